"""A function that a hook subscribed, in the form in which the one loop calls it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from types import FunctionType
from typing import Any

from agent_hooks.concurrency.threads import ThreadCall
from agent_hooks.dispatch.context import QuietContext
from agent_hooks.dispatch.stats import Stats
from agent_hooks.dispatch.table import OnError
from agent_hooks.errors import HookUsageError, is_own
from agent_hooks.patterns import found_in

THREAD_PATIENCE = 30.0
"""Seconds that an event waits for the thread of an event that was aborted."""
_POLL = 0.005
Undo = Callable[[], None]
ToolMatcher = str | re.Pattern[str] | Sequence[str | re.Pattern[str]]


class Handler:
    """A function that a hook subscribed, with its hook, its event, its options and its statistics.

    `hook`: the path of the hook; `label`: the same path as a person would write it.
    """

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
        # Whether its messages to the user are dropped.
        self.silent = False

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

    @property
    def place(self) -> tuple[str | None, int | None]:
        """File and line where the function begins; `None, None` for a function of this package."""
        file = self.file
        return (None, None) if file is None or is_own(file) else (file, self.line)

    async def _in_thread(self, event: Any, context: Any) -> Any:
        """Call the function in a thread of its own."""
        if self.abandoned is not None and self.abandoned.running:
            await self._wait_for_thread()
        call = ThreadCall(self.function, event, context)
        try:
            return await call.result()
        finally:
            if call.running:
                self.abandoned = call

    async def _wait_for_thread(self) -> None:
        """Wait until the thread of an earlier event ends; raises `HookUsageError` when it does not.

        A thread that has outlived its deadline is a failure of the hook, and is not waited for.  A thread whose call
        was aborted is not: the person pressed Escape, or the session ended.
        """
        # Imported here, because few programs abort a plain function.
        import anyio

        end = perf_counter() + THREAD_PATIENCE
        while (call := self.abandoned) is not None and call.running:
            if call.overdue:
                raise HookUsageError("is still running from an earlier event, and is not called again until it ends")
            if perf_counter() > end:
                text = f"is still running from an event that was aborted more than {THREAD_PATIENCE:g} s ago"
                raise HookUsageError(f"{text}, and is not called again until it ends")
            # The event loop of that call may be another one, so the end of the thread wakes no task here.
            await anyio.sleep(_POLL)

    def timed_out(self) -> None:
        """Take note that the handler was stopped at its deadline; its thread may go on."""
        if self.abandoned is not None:
            self.abandoned.overdue = True

    def replaced_by(self, function: Callable[..., Any]) -> Handler:
        """Return a copy that calls `function`, inline, and shares everything else."""
        # Imported here, because few programs do this.
        from copy import copy

        other = copy(self)
        other.function = other.call = function
        other.threaded = other.direct = False
        return other

    def silence(self) -> None:
        """Drop the handler's messages to the user.  Its dialogs stay."""
        if not self.silent:
            self.silent = True
            call = self.call
            self.call = lambda event, context: call(event, QuietContext.of(context))

    def handles(self, tool_name: str | None) -> bool:
        """Whether the handler wants events of this tool; raises `HookUsageError` for a runaway pattern."""
        return self.tool is None or tool_name is None or matches_tool(self.tool, tool_name)


def name_of(function: object) -> str:
    """Return a function's name as its author wrote it, without the functions it is defined in."""
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    return name.rpartition("<locals>.")[2]


def refuses_two(function: Callable[..., Any]) -> str | None:
    """Return why `function` cannot be called with two arguments; `None` when it can, or when Python does not know."""
    if _has_exactly_two(function):
        return None
    signature = _signature_of(function)
    return None if signature is None else _refuses(signature, 2)


def takes_context(function: Callable[..., Any]) -> bool:
    """Return whether an interceptor gets the context as a third argument.

    1. A function that needs three arguments gets it.
    2. A function that can be called with two gets it if its third parameter is named `ctx`.  A third parameter with any
       other name keeps its default: `lambda input, output, limit=limit: …` means its own value.
    3. A function with `*args` gets two.  If it is a decorator's, the function inside decides by rule 2.
    """
    if _has_exactly_two(function):
        return False
    signature = _signature_of(function)
    if signature is None or _refuses(signature, 3) is not None:
        return False
    if _refuses(signature, 2) is not None:
        return True
    names = _positional(signature)
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in signature.parameters.values()):
        inner = _signature_of(function, follow_wrapped=True)
        names = names if inner is None else _positional(inner)
    return names[2:3] == ["ctx"]


def _has_exactly_two(function: Callable[..., Any]) -> bool:
    """Return whether a plain function has two parameters; reading a signature takes as long as a subscription."""
    if not isinstance(function, FunctionType):
        return False
    code = function.__code__
    variadic = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return code.co_argcount == 2 and not code.co_kwonlyargcount and not variadic


def _signature_of(function: Callable[..., Any], *, follow_wrapped: bool = False) -> inspect.Signature | None:
    """Return the signature of a function, by default of the one that is called: a decorator may hand the inner one more.

    `None` where Python does not know it: for a builtin class, say.
    """
    try:
        return inspect.signature(function, follow_wrapped=follow_wrapped)
    except (TypeError, ValueError):
        return None


def _refuses(signature: inspect.Signature, count: int) -> str | None:
    """Return why a signature does not take that many positional arguments, `None` if it does."""
    try:
        signature.bind(*(None,) * count)
    except TypeError as exc:
        return str(exc)
    return None


def _positional(signature: inspect.Signature) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in signature.parameters.values() if each.kind in kinds]


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
