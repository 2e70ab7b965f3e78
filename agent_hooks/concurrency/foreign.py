"""The one way to call code of others: hooks, tools, guards, transformers, listeners, a UI.

Such code may raise anything, `SystemExit` and groups of exceptions too, and none of it may end the agent.  Two kinds of
exception are not a failure of the code and go on to the caller: Ctrl-C, and the cancellation of the task.  The caller
gets every other exception as a value, because only the caller knows which listeners hear of it and which policy applies.

`foreign_async` has the way to await such code.  This module needs no event loop, so pure code may use it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from agent_hooks.errors import HookUsageError, honest

# How many times the result of foreign code may be awaitable again.
MOST_AWAITS = 100


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
    # Foreign code may raise anything: the caller gets it as a value, reports it and applies its policy.
    except BaseException as exc:
        return Outcome(exception=honest(exc))


def is_awaitable(value: Any, awaited: int) -> bool:
    """Tell whether `value`, the result of foreign code, is to be awaited; `awaited`: how often that was done before.

    Raises `HookUsageError` for results that are awaitable again and again: without a suspension, no deadline ends them.
    """
    if not inspect.isawaitable(value):
        return False
    if awaited < MOST_AWAITS:
        return True
    if inspect.iscoroutine(value):
        value.close()
    raise HookUsageError(f"returned an awaitable whose result was awaitable again, {MOST_AWAITS} times")
