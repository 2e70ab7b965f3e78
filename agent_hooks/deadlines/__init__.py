"""How a handler is driven and cancelled: one clock per dispatch, one module per async backend.

Only the runner and `agent_hooks.testing` look in here.  The backend modules are imported at the first emit, so that
`import agent_hooks` loads neither asyncio nor trio.
"""

from __future__ import annotations

import sys

from agent_hooks.deadlines.base import GRACE, INF, Clock, DidNotStopError, Timer, cancellation_in, drive

__all__ = ["GRACE", "INF", "Clock", "DidNotStopError", "Timer", "cancellation_in", "clock_type", "drive"]


def clock_type() -> type[Clock]:
    """Return the clock of the backend that runs this task.

    Asks for a current asyncio *task*, because trio's guest mode has an asyncio loop but no asyncio task.
    """
    if "asyncio" in sys.modules and _in_asyncio_task():
        from agent_hooks.deadlines.asyncio import AsyncioClock

        return AsyncioClock
    from agent_hooks.deadlines.trio import TrioClock

    return TrioClock


def _in_asyncio_task() -> bool:
    import asyncio

    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # no event loop of asyncio runs here
        return False
