"""Interceptors: steps at the points of `points`, each with an id and a priority, that change an output object.

The one loop calls an interceptor like any other handler.  `as_handler` makes the handler: it copies the output, calls the
interceptor, and reads the output back as an answer.  The registries keep the interceptors.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from contextvars import ContextVar
from functools import wraps
from threading import Lock
from typing import Any, Protocol
from weakref import WeakSet, ref

from msgspec import Struct
from msgspec.structs import force_setattr

from agent_hooks.dispatch.handlers import Handler, Undo, is_async, refuses_two, takes_context
from agent_hooks.dispatch.inside import refuse_inside
from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.dispatch.points import POINTS, AtPoint, Changed, Point
from agent_hooks.errors import HookUsageError, did_you_mean, nearest, shown
from agent_hooks.patterns import compile_pattern, found_in
from agent_hooks.values.answers import Answer, Block
from agent_hooks.values.spellings import remedy

# Names that other systems have for the same points.
ALIASES = {
    "tool.execute.before": "tool.before",
    "tool.execute.after": "tool.after",
    "chat.message": "message.before",
    "chat.params": "params.before",
    "experimental.chat.system.transform": "chat.system.transform",
    "experimental.chat.messages.transform": "chat.messages.transform",
    "experimental.session.compacting": "session.compacting",
}


class Interceptor(Struct, frozen=True, eq=False):
    """One step at a point.

    `id`: unique in a registry; `name`: the point; `handler(input, output)`, sync or async, changes `output` and returns
    nothing, and one with a third parameter gets the context too (`handlers.takes_context` has the rule); `priority`:
    higher first, ties in the order of registration; `tool_matcher`: at tool points, a regular expression, as a text or
    compiled, searched in the tool's name; `agent_matcher`: at the other points, in the agent's id.  Without one it is
    called for all.  Raises `HookUsageError` for anything that cannot work.
    """

    id: str
    name: str
    handler: Callable[..., object]
    priority: int = 0
    tool_matcher: str | re.Pattern[str] | None = None
    agent_matcher: str | re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise HookUsageError(f"Interceptor(id=…) wants a text that is not empty, not {shown(self.id)}")
        where = f"interceptor {self.id!r}"
        if not isinstance(self.name, str) or (name := ALIASES.get(self.name, self.name)) not in POINTS:
            alias = nearest(self.name, [*POINTS, *ALIASES])
            near = remedy('api.on("', self.name) or did_you_mean(alias or self.name, [*POINTS, *filter(None, [alias])])
            raise HookUsageError(f"{where}: there is no point {shown(self.name)}{near}")
        force_setattr(self, "name", name)
        if not callable(self.handler):
            raise HookUsageError(f"{where}: {shown(self.handler)} is not callable; give it a function (input, output)")
        problem = refuses_two(self.handler)
        if problem and not takes_context(self.handler):
            raise HookUsageError(
                f"{where}: the handler cannot be called with (input, output) or (input, output, ctx): {problem}"
            )
        if isinstance(self.priority, bool) or not isinstance(self.priority, int):
            raise HookUsageError(f"{where}: priority wants an int, not {shown(self.priority)}")
        for option in ("tool_matcher", "agent_matcher"):
            if (pattern := getattr(self, option)) is not None:
                try:
                    compile_pattern(pattern)
                except HookUsageError as exc:
                    raise HookUsageError(f"{where}: {option}: {exc}") from None

    @property
    def point(self) -> Point:
        """The row of the table."""
        return POINTS[self.name]

    @property
    def matcher(self) -> str | re.Pattern[str] | None:
        """The matcher that counts at this point."""
        return self.tool_matcher if self.point.matched == "tool" else self.agent_matcher

    def takes(self, key: str | None) -> bool:
        """Tell whether it wants calls of that tool, or of that agent; raises `HookUsageError` for a runaway matcher."""
        return key is None or self.matcher is None or found_in(self.matcher, key)


class Watcher(Protocol):
    """A runner, as a registry that it plans by sees it."""

    def subscriptions_changed(self) -> None:
        """Drop the plans that were made from the old registrations."""

    def has_interceptor(self, id: str) -> bool:
        """Tell whether a registry of the runner holds an interceptor of that id."""
        ...


class InterceptorRegistry:
    """The interceptors of a program, by id, in the order of registration."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Interceptor, Handler]] = {}
        # Handlers in threads register too.
        self._lock = Lock()
        self._watchers: WeakSet[Watcher] = WeakSet()

    def __contains__(self, id: object) -> bool:
        return id in self._entries

    def add(self, interceptor: Interceptor, *, hook: str | None = None) -> Undo:
        """Register an interceptor and return a function that removes it again.

        `hook`: the path of the hook that it belongs to.  Raises `HookUsageError` when the id is taken, here, in the
        process-wide registry or in a runner that uses this registry.
        """
        if not isinstance(interceptor, Interceptor):
            raise HookUsageError(f"InterceptorRegistry.add wants an Interceptor, not {shown(interceptor)}")
        key = interceptor.id
        entry = interceptor, as_handler(interceptor, hook)
        with self._lock:
            known = self._entries.get(key)
            taken = known is not None and known[0] is not interceptor
            if taken or (known is None and self._taken_elsewhere(key)):
                raise HookUsageError(f"there is an interceptor {key!r} already; give this one another id")
            if known is None:
                self._entries = self._entries | {key: entry}
        if known is None:
            self._changed()

        def undo() -> None:
            entry = self._entries.get(key)
            if entry is not None and entry[0] is interceptor:
                self.remove(key)

        return undo

    def _taken_elsewhere(self, id: str) -> bool:
        return id in _process_wide or any(each.has_interceptor(id) for each in self._watchers)

    def remove(self, id: str) -> bool:
        """Remove an interceptor and return whether it was there.  A running dispatch keeps those it began with."""
        with self._lock:
            there = id in self._entries
            self._entries = {known: entry for known, entry in self._entries.items() if known != id}
        self._changed()
        return there

    def get(self, name: str, tool_name: str | None = None, agent_id: str | None = None) -> list[Interceptor]:
        """Return the interceptors of a point that take this tool or agent, in the order in which they run."""
        name = ALIASES.get(name, name)
        if name not in POINTS:
            raise HookUsageError(f"there is no point {shown(name)}{did_you_mean(name, POINTS)}")
        key = tool_name if POINTS[name].matched == "tool" else agent_id
        found = [each for each, _ in self._entries.values() if each.name == name and each.takes(key)]
        return sorted(found, key=lambda each: -each.priority)

    def list(self) -> list[Interceptor]:
        """Return all interceptors, in the order of registration."""
        return [interceptor for interceptor, _ in self._entries.values()]

    def clear(self) -> None:
        """Remove all interceptors."""
        self._entries = {}
        self._changed()

    # ---- for the runner

    def remove_those_of(self, hooks: Collection[str]) -> None:
        """Remove all interceptors of these hooks."""
        with self._lock:
            entries = self._entries
            self._entries = {key: entry for key, entry in entries.items() if entry[1].hook not in hooks}
        self._changed()

    def handlers(self) -> tuple[tuple[Interceptor, Handler], ...]:
        """Return each interceptor with the handler that the one loop calls for it."""
        return tuple(self._entries.values())

    def notify(self, watcher: Watcher) -> None:
        """Notify `watcher` of every change, for as long as it lives."""
        self._watchers.add(watcher)

    def _changed(self) -> None:
        for watcher in tuple(self._watchers):
            watcher.subscriptions_changed()


def as_handler(interceptor: Interceptor, hook: str | None = None) -> Handler:
    """Return the handler that the one loop calls with `(event, ctx)`.

    It calls `interceptor` with `(input, output)`, or with the context too if the function takes it.
    """
    point, function = interceptor.point, interceptor.handler
    step = function if takes_context(function) else _without_context(function)

    def settle(event: AtPoint[Any], output: Any, answer: object) -> Answer | None:
        if answer is not None:
            form = ": write output.block = True, and output.block_reason = …" if point.blocks else ""
            raise TypeError(f"interceptors change `output` and return nothing, not {shown(answer)}{form}")
        left = point.copy(output)
        if point.blocks and left.block:
            return Block(left.block_reason)
        return None if left == event.output else Changed(left)

    async def settle_later(event: AtPoint[Any], output: Any, answer: Any) -> Answer | None:
        return settle(event, output, await answer)

    if is_async(function):

        @wraps(function)
        async def call(event: AtPoint[Any], ctx: object) -> Any:
            output = point.copy(event.output)
            return settle(event, output, await step(event.input, output, ctx))  # type: ignore[misc]  # it is async
    else:

        @wraps(function)
        def call(event: AtPoint[Any], ctx: object) -> Any:
            output = point.copy(event.output)
            answer = step(event.input, output, ctx)
            take = settle_later if inspect.isawaitable(answer) else settle
            return take(event, output, answer)

    return Handler(
        call,
        hook=hook or f"interceptor {interceptor.id}",
        label=interceptor.id,
        event=interceptor.name,
        priority=interceptor.priority,
    )


def _without_context(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that drops the third argument."""
    return lambda given, output, ctx: function(given, output)


# ---- one registry for a whole process --------------------------------------------------------------------------------


class Adopter(Protocol):
    """The api of a hook, as the process-wide registry sees it."""

    def adopt(self, interceptor: Interceptor) -> Undo:
        """Register an interceptor as one of the hook."""
        ...


# Set while code of a hook runs outside of a handler: an interceptor that the code registers is the hook's own.  The
# reference is weak, because asyncio keeps the context of a cancelled timer, and so would keep a hook that was unloaded.
adopting: ContextVar[ref[Adopter] | None] = ContextVar("agent_hooks adopting", default=None)


class _ProcessWideRegistry(InterceptorRegistry):
    """The registry that every runner of the process uses.

    A hook's interceptor is registered with the hook and its runner instead, and goes when the hook is unloaded: one
    server process serves many projects.
    """

    def add(self, interceptor: Interceptor, *, hook: str | None = None) -> Undo:
        reference = adopting.get()
        adopter = None if reference is None else reference()
        if adopter is not None:
            return adopter.adopt(interceptor)
        if (dispatch := current_dispatch()) is not None:
            return dispatch.owner.intercept(dispatch.handler.hook, interceptor)
        return super().add(interceptor, hook=hook)


# It costs nothing while it is empty.
_process_wide = _ProcessWideRegistry()
_initialized = False


def process_wide() -> InterceptorRegistry:
    """Return the registry that every runner of the process uses, initialized or not."""
    return _process_wide


def initialize_interceptors() -> InterceptorRegistry:
    """Return the process-wide registry, whose interceptors count in every runner of this process.

    Within one priority they run before those of a runner.  Calling this twice changes nothing.
    """
    global _initialized
    refuse_inside("initialize_interceptors()")
    _initialized = True
    return _process_wide


def get_interceptors() -> InterceptorRegistry | None:
    """Return the process-wide registry, `None` before `initialize_interceptors`."""
    refuse_inside("get_interceptors()")
    return _process_wide if _initialized else None


def reset_interceptors() -> None:
    """Empty the process-wide registry, at the end of a test."""
    global _initialized
    _initialized = False
    _process_wide.clear()
