"""Run the server on a random port of 127.0.0.1, until it is told to end."""

from __future__ import annotations

import html
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any

import anyio
from anyio.lowlevel import current_token
from hypercorn.config import Config
from starlette.types import ASGIApp

from agent_hooks.look.app import START_SECONDS, Access, application
from agent_hooks.look.live import Live
from agent_hooks.look.viewing import Viewing
from agent_hooks.storage.files import refusing

_PAGE = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>agent-hooks look</title>
<p><a href="{url}" rel="noreferrer">Go on to the page</a></p>
"""
# Seconds for the requests that are open at the end.
_LAST_SECONDS = 1.0


def listen() -> socket.socket:
    """Return a socket that listens on a free port of 127.0.0.1."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    return listener


async def look(
    view: Viewing,
    directory: str,
    ready: Callable[[str, str], object],
    stop: anyio.Event,
    listener: socket.socket | None = None,
) -> None:
    """Serve the page until `stop` is set.

    `directory`: for the redirect file; `ready`: called with the address and the path of the redirect file, as soon as a
    browser can connect; `listener`: a bound socket of 127.0.0.1, else a free port is taken.
    """
    listener = listener or listen()
    host = f"127.0.0.1:{listener.getsockname()[1]}"
    access, live = Access(host), Live(view)
    file = StartFile(directory, f"{access.origin}/#start={access.start_token}")
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live.run)
            tasks.start_soon(_remove_later, file)
            # The socket listens before the browser comes.
            listener.listen()
            async with _serving(application(view, access, live, file.remove), listener):
                try:
                    ready(access.origin, file.path)
                    await stop.wait()
                finally:
                    live.end()
            tasks.cancel_scope.cancel()
    finally:
        file.remove()


async def _remove_later(file: StartFile) -> None:
    await anyio.sleep(START_SECONDS)
    file.remove()


@asynccontextmanager
async def _serving(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Answer requests within the block."""
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.loglevel = "WARNING"
    config.include_server_header = False
    config.graceful_timeout = _LAST_SECONDS
    backend = "trio" if "trio" in type(current_token().native_token).__module__ else "asyncio"
    hypercorn: Any = import_module(f"hypercorn.{backend}")
    stop = anyio.Event()

    # Its own trigger ends it in order.
    scope = anyio.CancelScope(shield=True)

    async def run() -> None:
        with scope:
            await hypercorn.serve(app, config, shutdown_trigger=stop.wait)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            yield
        finally:
            stop.set()
            # From Python 3.12 on, the end waits for all clients, and one may read slowly.
            scope.deadline = anyio.current_time() + 2 * _LAST_SECONDS


class StartFile:
    """The redirect file of one start, which leads the browser to the page: only its owner can read it.

    The start token is in this file, and in no argument of a process, because every user of the machine can read those.
    It is behind `#` in the address, a part that a browser sends to no server.

    `directory`: where it is written, made with access for its owner only; `url`: the address with the start token.
    """

    def __init__(self, directory: str, url: str) -> None:
        self.path = os.path.join(directory, f"start-{secrets.token_hex(8)}.html")
        with refusing("write", self.path):
            os.makedirs(directory, 0o700, exist_ok=True)
            # Only a new file has the rights that are asked for, and no link leads elsewhere.
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "w") as file:
                file.write(_PAGE.format(url=html.escape(url, quote=True)))

    def remove(self) -> None:
        """Remove the file if it still exists."""
        with suppress(OSError):
            os.unlink(self.path)
