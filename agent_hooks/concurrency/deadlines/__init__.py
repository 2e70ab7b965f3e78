"""How a handler is driven and cancelled: one clock per dispatch, one module per async backend.

The backend modules are imported at the first emit, so that `import agent_hooks` loads neither asyncio nor trio.  Whoever
drives a coroutine by hand, without an event loop, needs none of them: nothing can be cancelled there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from agent_hooks.concurrency.deadlines.base import (
    GRACE,
    INF,
    Clock,
    DidNotStopError,
    Onlooker,
    StillClock,
    Timer,
    cancellation_in,
    drive,
)

__all__ = [
    "GRACE",
    "INF",
    "Clock",
    "DidNotStopError",
    "Onlooker",
    "StillClock",
    "Timer",
    "call_soon",
    "cancellation_in",
    "cancelled_class",
    "clock_type",
    "drive",
    "in_asyncio_task",
    "in_trio_task",
]


def call_soon() -> Callable[[Callable[[], object]], object] | None:
    """Return what lets the event loop that runs call something soon, from any thread; `None` where none runs."""
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
    """Return what a cancelled task is told by, for an `except`; nothing is, where no event loop runs."""
    if sys.modules.keys().isdisjoint(("asyncio", "trio")):
        return ()
    import anyio  # here, because it is needed only when something was raised

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


def in_asyncio_task() -> bool:
    """Tell whether this is a task of asyncio."""
    if "asyncio" not in sys.modules:
        return False
    import asyncio

    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # no event loop of asyncio runs here
        return False
