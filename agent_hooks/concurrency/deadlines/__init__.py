"""How a handler is driven and cancelled: one clock per dispatch, one module per async backend.

The backend modules are imported at the first emit, so that `import agent_hooks` loads neither asyncio nor trio.  A
program that drives coroutines by hand, without an event loop, needs none of them: nothing can be cancelled there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from agent_hooks.concurrency.deadlines.base import (
    GRACE,
    INF,
    CallWatch,
    Clock,
    DidNotStopError,
    ForkedClock,
    LeftOpenError,
    StillClock,
    Timer,
    cancellation_in,
    drive,
)

__all__ = [
    "GRACE",
    "INF",
    "CallWatch",
    "Clock",
    "DidNotStopError",
    "ForkedClock",
    "LeftOpenError",
    "StillClock",
    "Timer",
    "call_soon",
    "cancellation_in",
    "cancelled_class",
    "clock_type",
    "deliver_cancellation",
    "drive",
    "in_asyncio_task",
    "in_trio_task",
]


def call_soon() -> Callable[[Callable[[], object]], object] | None:
    """Return the function that makes the running event loop call another one soon, from any thread.

    Returns `None` where no event loop runs.
    """
    if in_asyncio_task():
        import asyncio

        return asyncio.get_running_loop().call_soon_threadsafe
    if in_trio_task():
        import trio

        return trio.lowlevel.current_trio_token().run_sync_soon
    return None


def clock_type() -> type[Clock]:
    """Return the clock of the backend that runs this task, or one that stands still where no event loop runs.

    Asks for a current asyncio *task*, because trio's guest mode has an asyncio loop but no asyncio task.
    """
    if in_asyncio_task():
        from agent_hooks.concurrency.deadlines.asyncio import AsyncioClock

        return AsyncioClock
    if in_trio_task():
        from agent_hooks.concurrency.deadlines.trio import TrioClock

        return TrioClock
    return StillClock


def cancelled_class() -> type[BaseException] | tuple[()]:
    """Return the class of a cancellation, for an `except`; an empty tuple where no event loop runs."""
    if sys.modules.keys().isdisjoint(("asyncio", "trio")):
        return ()
    # Imported here, because it is needed only when something was raised.
    import anyio

    try:
        return anyio.get_cancelled_exc_class()
    except anyio.NoEventLoopError:
        return ()


def in_trio_task() -> bool:
    """Tell whether this is a task of trio."""
    if "trio" not in sys.modules:
        return False
    import trio

    return trio.lowlevel.in_trio_task()


async def deliver_cancellation() -> None:
    """Raise a cancellation of trio that a handler has swallowed.

    trio delivers it again at the next checkpoint, and a tool may act before it has one.  On asyncio, the clock of the
    handler raises it.
    """
    if in_trio_task():
        import trio

        await trio.lowlevel.checkpoint_if_cancelled()


def in_asyncio_task() -> bool:
    """Tell whether this is a task of asyncio."""
    if "asyncio" not in sys.modules:
        return False
    import asyncio

    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        # No event loop of asyncio runs here.
        return False
