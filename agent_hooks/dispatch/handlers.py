"""A function that a hook subscribed, in the form in which the one loop calls it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from agent_hooks.concurrency.threads import ThreadCall
from agent_hooks.dispatch.stats import Stats
from agent_hooks.dispatch.table import OnError
from agent_hooks.errors import HookUsageError
from agent_hooks.patterns import found_in

Undo = Callable[[], None]
ToolMatcher = str | re.Pattern[str] | Sequence[str | re.Pattern[str]]


class Handler:
    """A function that a hook subscribed, with its hook, its event, its options and its statistics.

    `hook`: the path of the hook; `label`: the same path as a person would write it.
    """

    __slots__ = (
        "abandoned",
        "call",
        "direct",
        "event",
        "function",
        "hook",
        "label",
        "mistaken",
        "name",
        "on_error",
        "priority",
        "stats",
        "threaded",
        "tool",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        hook: str,
        label: str,
        event: str,
        priority: int = 0,
        tool: ToolMatcher | None = None,
        on_error: OnError | None = None,
        inline: bool = False,
    ) -> None:
        self.function = function
        self.hook = hook
        self.label = label
        self.event = event
        self.name = name_of(function)
        self.priority = priority
        self.tool = tool
        self.on_error = on_error
        self.threaded = not inline and not is_async(function)
        # The one loop calls this.
        self.call = self._in_thread if self.threaded else function
        # Whether `call` returns a coroutine for sure.
        self.direct = self.threaded or is_coroutine_function(function)
        self.stats = Stats()
        # A thread that outlived its dispatch.
        self.abandoned: ThreadCall | None = None
        # Whether an answer to an event that takes none has been reported.
        self.mistaken = False

    @property
    def file(self) -> str | None:
        """The file where the function is written, if Python knows."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return None if code is None else code.co_filename

    @property
    def line(self) -> int | None:
        """The line of its file where the function begins, if Python knows."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return None if code is None else code.co_firstlineno

    async def _in_thread(self, event: Any, context: Any) -> Any:
        """Call the function in a thread of its own."""
        if self.abandoned is not None and self.abandoned.running:
            raise HookUsageError("is still running from an earlier event, and is not called again until it ends")
        call = ThreadCall(self.function, event, context)
        try:
            return await call.result()
        finally:
            if call.running:
                self.abandoned = call

    def replaced_by(self, function: Callable[..., Any]) -> Handler:
        """Return a copy that calls `function`, inline, and shares everything else."""
        # Imported here, because few programs do this.
        from copy import copy

        other = copy(self)
        other.function = other.call = function
        other.threaded = other.direct = False
        return other

    def handles(self, tool_name: str | None) -> bool:
        """Whether the handler wants events of this tool; raises `HookUsageError` for a runaway pattern."""
        return self.tool is None or tool_name is None or matches_tool(self.tool, tool_name)


def name_of(function: object) -> str:
    """Return a function's name as its author wrote it, without the functions it is defined in."""
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    return name.rpartition("<locals>.")[2]


def refuses_two(function: Callable[..., Any]) -> str | None:
    """Return why `function` cannot be called with two arguments; `None` when it can, or when Python does not know."""
    if isinstance(function, FunctionType):
        code = function.__code__
        if code.co_argcount == 2 and not code.co_kwonlyargcount:
            # Most handlers are like this, and reading a signature takes as long as the rest of a subscription.
            return None
    try:
        # of the function that is called: a decorator may hand the one inside more
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # of a builtin class, say
        return None
    try:
        signature.bind(None, None)
    except TypeError as exc:
        return str(exc)
    return None


def matches_tool(matcher: ToolMatcher, tool_name: str) -> bool:
    """Tell whether `matcher` (an exact name, a compiled pattern to search, or a sequence of those) takes `tool_name`."""
    if isinstance(matcher, str):
        return matcher == tool_name
    if isinstance(matcher, re.Pattern):
        return found_in(matcher, tool_name)
    return any(matches_tool(each, tool_name) for each in matcher)


def is_coroutine_function(function: object) -> bool:
    """Tell whether `function` is an `async def` itself."""
    return isinstance(function, FunctionType) and bool(function.__code__.co_flags & inspect.CO_COROUTINE)


def is_async(function: Any) -> bool:
    """Tell whether `function` is known to return an awaitable: seen through partials, bound methods and `__call__`."""
    while isinstance(function, partial):
        function = function.func
    if inspect.iscoroutinefunction(function):
        return True
    return not isinstance(function, FunctionType) and inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # not whether it is callable: whether calling is async
    )
