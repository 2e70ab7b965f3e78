"""The one way to call code of others: hooks, tools, guards, listeners, a UI.

Such code may raise anything, `SystemExit` and groups of exceptions too, and none of it may end the agent.  Two kinds of
exception are not a failure of the code and go on to the caller: Ctrl-C, and the cancellation of the task.  The caller
gets every other exception as a value, because only the caller knows who is told and which policy applies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from agent_hooks.concurrency.deadlines import cancellation_in, cancelled_class


class Outcome(NamedTuple):
    """The value that foreign code returned, or the exception that it raised."""

    value: Any = None
    exception: BaseException | None = None


def attempt(function: Callable[..., Any], *args: Any) -> Outcome:
    """Call `function` and return its outcome.  Raises `KeyboardInterrupt`."""
    try:
        return Outcome(function(*args))
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        # The module says why: the caller reports the exception and applies its policy.
        return Outcome(exception=exc)


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
        # As in `attempt`.
        if (cancellation := cancellation_in(exc, cancelled_class())) is not None and cancelled():
            raise cancellation from None
        return Outcome(exception=exc)
