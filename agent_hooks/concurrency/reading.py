"""Read a socket whenever there is something to read, on either backend."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import anyio

from agent_hooks.concurrency.deadlines import in_asyncio_task


def is_read(connection: socket.socket) -> bool:
    """Tell whether the event loop still calls `take` of `read_with`; code that removed its readers ends that.

    asyncio has no public name for the readers of a loop; `test_cancelling` guards the private one.
    """
    if not in_asyncio_task():
        return True
    import asyncio

    selector: Any = getattr(asyncio.get_running_loop(), "_selector", None)
    return selector is None or connection in selector.get_map()


async def read_with(connection: socket.socket, take: Callable[[], bool]) -> None:
    """Call `take` whenever `connection` can be read, until `take` returns `False`; an exception of it goes through.

    On asyncio the loop itself calls `take`.  That saves a registration and a switch of tasks a message, a third of a
    round trip between two processes.
    """
    if not in_asyncio_task():
        while True:
            await anyio.wait_readable(connection)
            if not take():
                return
    import asyncio

    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def ready() -> None:
        if over.done():
            return
        try:
            more = take()
        # It goes on to the task that awaits the reading.
        except BaseException as exc:
            over.set_exception(exc)
        else:
            if not more:
                over.set_result(None)

    loop.add_reader(connection, ready)
    try:
        await over
    finally:
        loop.remove_reader(connection)
