"""The handlers of an event or a point, and the handlers that can never run.

The answers are computed at each call, because hooks and registries may grow; the engine keeps them as plans.  The only
state here is the set of disabled hooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from agent_hooks.dispatch.handlers import Handler, ToolMatcher
from agent_hooks.dispatch.interceptors import Interceptor, InterceptorRegistry
from agent_hooks.dispatch.loop import disabled, policy
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import TOOL_EVENTS, EventSpec, judges
from agent_hooks.errors import HookError, HookUsageError, did_you_mean, hook_error, shown
from agent_hooks.hooks.loaded import LoadedHook

Takes = Callable[[str | None], bool]


class Subscriptions:
    """The handlers of `hooks` and the interceptors of `registries`; at equal priority, the first registry wins."""

    def __init__(self, hooks: Iterable[LoadedHook], registries: Sequence[InterceptorRegistry]) -> None:
        self._hooks = hooks
        self._registries = registries
        self._disabled: set[str] = set()
        # The hooks that do not hear of a reload, because it does not load them again.
        self.deaf: frozenset[str] = frozenset()
        # Set when the runner is left: the handlers of each event at that moment, and the interceptors.
        self._frozen: dict[str, tuple[Handler, ...]] | None = None
        self._frozen_interceptors: tuple[tuple[Interceptor, Handler], ...] = ()

    def __iter__(self) -> Iterator[Handler]:
        """Yield every handler, in load order, then those of interceptors."""
        for hook in self._hooks:
            for handlers in hook.handlers.values():
                yield from handlers
        for _, handler in self._interceptors():
            yield handler

    def freeze(self) -> None:
        """Keep today's handlers until `thaw`: a gate that unsubscribes while its hook is unloaded does not open."""
        if self._frozen is not None:
            # The handlers of the first time count: since then some may have unsubscribed.
            return
        events = {event for hook in self._hooks for event in hook.handlers}
        self._frozen_interceptors = tuple(self._interceptors())
        self._frozen = {event: tuple(self._handlers_of(event)) for event in events}

    def thaw(self) -> None:
        """Let subscriptions count again, after a reload."""
        self._frozen, self._frozen_interceptors = None, ()

    def _interceptors(self) -> Iterable[tuple[Interceptor, Handler]]:
        if self._frozen is not None:
            return self._frozen_interceptors
        return (each for registry in self._registries for each in registry.handlers())

    def _handlers_of(self, event_type: str) -> Iterable[Handler]:
        if self._frozen is not None:
            return self._frozen.get(event_type, ())
        return (handler for hook in self._hooks for handler in hook.handlers.get(event_type, ()))

    def has(self, event_type: str) -> bool:
        """Tell whether any handler is subscribed to events of this type."""
        return any(True for _ in self._handlers_of(event_type))

    def concern_tools(self) -> bool:
        """Tell whether any handler or interceptor is subscribed to the calls of some tool."""
        return any(self.has(event) for event in TOOL_EVENTS) or any(
            each.point.matched == "tool" for each, _ in self._interceptors()
        )

    def handlers(self, name: str, key: str | None, spec: EventSpec) -> list[Handler]:
        """Return the handlers of an event or a point, in the order in which they are called.

        `key`: the tool's name, or at a point of the agent the agent's id.
        """
        found = [each for matched in self._subscribed(name) if (each := _matching(*matched, key)) is not None]
        if self.deaf and name.startswith("session:"):
            found = [handler for handler in found if handler.hook not in self.deaf]
        if former := {hook.path for hook in self._hooks if hook.former_of}:
            # A former version judges, and the new version does the rest.
            found = [handler for handler in found if handler.hook not in former or judges(name, spec)]
            for handler in found:
                if handler.hook in former:
                    handler.silence()
        if self._disabled:
            found = [
                disabled(handler) if self.is_disabled(handler.hook) else handler
                for handler in found
                if not self.is_disabled(handler.hook) or policy(handler, spec) == "block"
            ]
        found.sort(key=lambda handler: -handler.priority)
        return found

    def _subscribed(self, name: str) -> Iterator[tuple[Handler, Takes]]:
        """Yield the handlers of an event or a point, each with the function that matches its tool or agent."""
        if name in POINTS:
            for interceptor, handler in self._interceptors():
                if interceptor.name == name:
                    yield handler, interceptor.takes
        else:
            for handler in self._handlers_of(name.partition(":")[0]):
                yield handler, handler.handles

    def disable(self, hook_path: str) -> None:
        """Disable a hook: its gates block from now on, its other handlers are left out."""
        self._disabled.add(hook_path)

    def forget(self, hook_paths: Iterable[str]) -> None:
        """Enable hooks again that were loaded again."""
        self._disabled.difference_update(hook_paths)

    def is_disabled(self, hook_path: str) -> bool:
        """Tell whether a hook is disabled."""
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
            for each, handler in self._interceptors()
            if each.point.matched == "tool" and each.matcher is not None and not _takes_any(each.takes, tools)
        ]
        return reports


def _matching(handler: Handler, takes: Takes, key: str | None) -> Handler | None:
    """Return `handler` if it takes `key`; a handler whose pattern cannot be searched is replaced by one that fails."""
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
    except HookUsageError:
        # The search takes too long.  The handler fails with that text at each call.
        return True


def _never(handler: Handler, matcher: str, name: str, known: Iterable[str]) -> HookError:
    """Return the report that a handler never runs."""
    # Other agents, and the matchers of interceptors, take a text for a regular expression.
    pattern = ""
    if matcher.startswith("tool="):
        if name and set(name) <= set(".*"):
            pattern = "; leave tool= out for every tool"
        elif "|" in name:
            pattern = f"; a text is one exact name: write a list of names, or re.compile({name!r})"
        elif "*" in name:
            regular = name.replace(".*", "*").replace("*", ".*")
            pattern = f"; a text is one exact name: write re.compile({regular!r})"
    return hook_error(
        None,
        hook=handler.hook,
        handler=handler.name,
        event=handler.event,
        outcome="continued",
        error=f"{matcher} can match no known tool, so this handler never runs{pattern or did_you_mean(name, known)}",
        place=(handler.file, handler.line),
    )


def _first_name(matcher: ToolMatcher) -> str:
    """Return the first name in a matcher, to find the nearest known tool."""
    if isinstance(matcher, str):
        return matcher
    return re.sub(r"\W", "", matcher.pattern) if isinstance(matcher, re.Pattern) else _first_name(matcher[0])
