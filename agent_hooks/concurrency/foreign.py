"""The one way to call code of others: hooks, tools, guards, transformers, listeners, a UI.

Such code may raise anything, `SystemExit` and groups of exceptions too, and none of it may end the agent.  Two kinds of
exception are not a failure of the code and go on to the caller: Ctrl-C, and the cancellation of the task.  The caller
gets every other exception as a value, because only the caller knows which listeners hear of it and which policy applies.

`foreign_async` has the way to await such code.  This module needs no event loop, so pure code may use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


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
