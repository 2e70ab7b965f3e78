"""Who subscribed to what: which handlers an event or a point goes to, and which of them can never run.

Asks anew each time and remembers nothing but which hooks were disabled; the runner keeps the answers as plans.
Above: runner.  Below: dispatch, loader, interceptors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from agent_hooks.dispatch.handlers import Handler, ToolMatcher
from agent_hooks.dispatch.interceptors import InterceptorRegistry
from agent_hooks.dispatch.loop import disabled, policy
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import EventSpec
from agent_hooks.errors import HookError, HookUsageError, did_you_mean, shown
from agent_hooks.hooks.loader import LoadedHook

Takes = Callable[[str | None], bool]


class Subscriptions:
    """The handlers of `hooks` and `interceptors`, both of which may grow later."""

    def __init__(self, hooks: Iterable[LoadedHook], interceptors: InterceptorRegistry) -> None:
        self._hooks = hooks
        self._interceptors = interceptors
        self._disabled: set[str] = set()

    def __iter__(self) -> Iterator[Handler]:
        """Yield every handler, in load order, then those of interceptors."""
        for hook in self._hooks:
            for handlers in hook.handlers.values():
                yield from handlers
        for _, handler in self._interceptors.handlers():
            yield handler

    def has(self, event_type: str) -> bool:
        """Tell whether any handler is subscribed to events of this type."""
        return any(hook.handlers.get(event_type) for hook in self._hooks)

    def handlers(self, name: str, key: str | None, spec: EventSpec) -> list[Handler]:
        """Return who is called on an event or a point, in order; `key`: the tool's name, or at a point the agent's."""
        found = [each for matched in self._subscribed(name) if (each := _matching(*matched, key)) is not None]
        if self._disabled:
            found = [
                disabled(handler) if self.is_disabled(handler.hook) else handler
                for handler in found
                if not self.is_disabled(handler.hook) or policy(handler, spec) == "block"
            ]
        found.sort(key=lambda handler: -handler.priority)
        return found

    def _subscribed(self, name: str) -> Iterator[tuple[Handler, Takes]]:
        """Yield the handlers of an event or a point, each with what tells whether it wants a tool's or an agent's."""
        if name in POINTS:
            for interceptor, handler in self._interceptors.handlers():
                if interceptor.name == name:
                    yield handler, interceptor.takes
        else:
            for hook in self._hooks:
                for handler in hook.handlers.get(name.partition(":")[0], ()):
                    yield handler, handler.handles

    def disable(self, hook_path: str) -> None:
        """Call no handler of a hook any more: its gates block, the others are left out."""
        self._disabled.add(hook_path)

    def is_disabled(self, hook_path: str) -> bool:
        """Tell whether a handler of that hook would not stop."""
        return hook_path in self._disabled

    def unmatchable(self, tools: Collection[str]) -> list[HookError]:
        """Return a report of every handler and interceptor whose matcher takes none of the known `tools`."""
        reports = [
            _never(handler, f"tool={shown(handler.tool)}", _first_name(handler.tool), tools)
            for hook in self._hooks
            for handlers in hook.handlers.values()
            for handler in handlers
            if handler.tool is not None and not _takes_any(handler.handles, tools)
        ]
        reports += [
            _never(handler, f"tool_matcher={shown(each.matcher)}", _first_name(each.matcher), tools)
            for each, handler in self._interceptors.handlers()
            if each.point.matched == "tool" and each.matcher is not None and not _takes_any(each.takes, tools)
        ]
        return reports


def _matching(handler: Handler, takes: Takes, key: str | None) -> Handler | None:
    """Return `handler` if it wants events of `key`; one whose pattern cannot be searched fails, and so blocks."""
    try:
        return handler if takes(key) else None
    except HookUsageError as exc:
        problem = exc

    def refuse(event: object, ctx: object) -> None:
        raise problem

    return handler.replaced_by(refuse)


def _takes_any(takes: Takes, tools: Iterable[str]) -> bool:
    try:
        return any(takes(name) for name in tools)
    except HookUsageError:  # a pattern that runs away; it fails, and says so, with each call
        return True


def _never(handler: Handler, what: str, name: str, known: Iterable[str]) -> HookError:
    """Return the report that a handler never runs."""
    return HookError(
        hook_path=handler.hook,
        handler=handler.name,
        event=handler.event,
        error=f"{what} can match no known tool, so this handler never runs{did_you_mean(name, known)}",
        file=handler.file,
        line=handler.line,
        outcome="continued",
    )


def _first_name(matcher: ToolMatcher) -> str:
    """Return what an author wrote as the tool's name, for the nearest one to be found."""
    if isinstance(matcher, str):
        return matcher
    return re.sub(r"\W", "", matcher.pattern) if isinstance(matcher, re.Pattern) else _first_name(matcher[0])
