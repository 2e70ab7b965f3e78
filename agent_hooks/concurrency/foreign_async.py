"""The one way to await code of others; `foreign` has the idea, and the way to call code that returns at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_hooks.concurrency.deadlines import cancellation_in, cancelled_class
from agent_hooks.concurrency.foreign import Outcome, is_awaitable
from agent_hooks.concurrency.forks import await_in_parent, end_child_of, forks, function_name
from agent_hooks.errors import honest


async def attempt_async(
    function: Callable[..., Any], *args: Any, cancelled: Callable[[], bool] = lambda: True
) -> Outcome:
    """Call `function`, await its result while that is awaitable, and return the outcome.

    `cancelled`: tells whether the task, or the scope around this call, was cancelled.  If not, a cancellation that comes
    out is one that the foreign code made up, and an exception like others.  Raises `KeyboardInterrupt` and the task's
    cancellation.
    """
    before = forks()

    def name() -> str:
        return function_name(function)

    try:
        value = function(*args)
        end_child_of(name, before)
        awaited = 0
        while is_awaitable(value, awaited):
            awaited += 1
            value = await await_in_parent(name, value)
        return Outcome(value)
    except KeyboardInterrupt:
        raise
    # As in `foreign.attempt`.
    except BaseException as exc:
        end_child_of(name, before, exc)
        exc = honest(exc)
        if (cancellation := cancellation_in(exc, cancelled_class())) is not None and cancelled():
            raise cancellation from None
        return Outcome(exception=exc)
