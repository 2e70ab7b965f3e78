"""The one way to await code of others; `foreign` has the idea, and the way to call code that returns at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agent_hooks.concurrency.deadlines import cancellation_in, cancelled_class
from agent_hooks.concurrency.foreign import Outcome


async def attempt_async(
    function: Callable[..., Any], *args: Any, cancelled: Callable[[], bool] = lambda: True
) -> Outcome:
    """Call `function`, await its result while that is awaitable, and return the outcome.

    `cancelled`: tells whether the task, or the scope around this call, was cancelled.  If not, a cancellation that comes
    out is one that the foreign code made up, and an exception like others.  Raises `KeyboardInterrupt` and the task's
    cancellation.
    """
    try:
        value = function(*args)
        while inspect.isawaitable(value):
            value = await value
        return Outcome(value)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        # As in `foreign.attempt`.
        if (cancellation := cancellation_in(exc, cancelled_class())) is not None and cancelled():
            raise cancellation from None
        return Outcome(exception=exc)
