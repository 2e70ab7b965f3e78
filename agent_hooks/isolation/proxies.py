"""The stand-ins in the agent for the registrations of a hook in its process.

The dispatch calls them like any other handler: order, priority, lanes, snapshots, deadlines and failure policies are
those of the agent.  A stand-in sends the call to the process and waits for the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from agent_hooks.concurrency import process as programs
from agent_hooks.dispatch.context import HookContext, Surroundings
from agent_hooks.dispatch.handlers import Handler, Undo
from agent_hooks.dispatch.interceptors import Interceptor
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import rows_of
from agent_hooks.effects import CallEffects
from agent_hooks.isolation.exact import Packer, holds_any
from agent_hooks.isolation.process import HookProcess
from agent_hooks.isolation.protocol import (
    Ask,
    Call,
    Execute,
    Offered,
    Place,
    Reach,
    Registrations,
    Scene,
    Stepping,
    Subscribed,
    Unload,
)
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import BeforeToolCall, ToolCall
from agent_hooks.values.tool import OnUpdate


class Registry(Protocol):
    """The api of a hook in the agent, as the stand-ins register with it."""

    path: str
    label: str
    state: dict[str, Any]
    handlers: dict[str, list[Handler]]
    interceptors: list[Interceptor]
    tools: list[Any]

    def adopt(self, interceptor: Interceptor) -> Undo:
        """Register an interceptor."""
        ...

    def changed(self) -> None:
        """Tell the runners that the handlers have changed."""


class RemoteHandler(Handler):
    """The stand-in of a handler; `file` and `line` are those of the function in the process."""

    __slots__ = ("_place", "number", "observes")

    def __init__(self, process: HookProcess, api: Registry, found: Subscribed) -> None:
        # An event that takes no answer is told to observers only.
        self.observes = all(
            (found.on_error or row.on_error) == "continue" or not row.can_block for row in rows_of(found.event)
        )
        super().__init__(
            _call_of(process, self),
            hook=api.path,
            label=api.label,
            event=found.event,
            priority=found.priority,
            tool=None if found.tool is None else [_matcher(each) for each in found.tool],
            on_error=found.on_error,
        )
        self.name = found.name
        self.number = found.number
        self._place = found.file, found.line

    @property
    def file(self) -> str | None:
        """The file of the function."""
        return self._place[0]

    @property
    def line(self) -> int | None:
        """The first line of the function."""
        return self._place[1]

    def timed_out(self) -> None:
        """Do nothing: the handler has ended, or its process was killed."""


def _call_of(process: HookProcess, handler: RemoteHandler) -> Callable[..., Any]:
    async def call(event: Any, ctx: HookContext) -> Any:
        noted: list[str] | None = [] if handler.observes else None
        packed = Packer(noted).pack(event, "event")
        place = place_of(ctx, event)

        value = await process.ask(
            lambda number: Call(number, handler.number, packed, place),
            lambda request: answered(request, ctx),
            notify=lambda text, kind: ctx.ui.notify(text, kind),
        )
        if noted and value is not None and holds_any(value, noted):
            raise TypeError("answered with the text of a value that cannot cross between two processes")
        return value

    return call


def place_of(ctx: HookContext, event: Any) -> Place:
    """Return the surroundings that a context shows, and those of the call of an event."""
    pack = Packer().pack
    texts = ctx.cwd, ctx.mode, ctx.session_id, ctx.session_file, ctx.agent_id, ctx.tool_name
    cwd, mode, session_id, session_file, agent_id, tool_name = [pack(each, "the context") for each in texts]
    return Place(cwd, ctx.has_ui, mode, session_id, session_file, agent_id, tool_name, _scene_of(event))


def _scene_of(event: Any) -> Scene | None:
    """Return the directories of the call of an event, `None` for any other event."""
    find = event.__dict__.get("effects_of") if isinstance(event, ToolCall | BeforeToolCall) else None
    if not isinstance(find, CallEffects):
        return None
    pack = Packer().pack
    return Scene(pack(find.cwd, "cwd"), pack(find.root, "root"), pack(find.home, "home"), find.stays_open)


async def answered(request: Ask, ctx: HookContext) -> Any:
    """Open the dialog or run the program that a handler asks for, and return the packed result."""
    arguments = request.arguments
    found: Any
    if request.method == "exec":
        command, args, timeout, cwd = arguments
        found = await ctx.exec(command, args, timeout=timeout, cwd=cwd)
    else:
        found = await getattr(ctx.ui, request.method)(*arguments)
    return Packer().pack(found, f"the answer of {request.method}")


async def answered_late(request: Ask, place: Surroundings) -> Any:
    """Do the same for code that belongs to no running event, in the runner's own surroundings."""
    arguments = request.arguments
    found: Any
    if request.method == "exec":
        command, args, timeout, cwd = arguments
        found = await programs.run(command, args, timeout=timeout, cwd=cwd or place.cwd)
    else:
        found = await getattr(place.ui, request.method)(*arguments)
    return Packer().pack(found, f"the answer of {request.method}")


class RemoteTool:
    """The stand-in of a tool."""

    def __init__(self, process: HookProcess, found: Offered) -> None:
        self.name = found.name
        self.description = found.description
        self.input_schema: Mapping[str, Any] = found.input_schema
        self._process = process

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Run the tool in its process."""
        pack = Packer().pack
        packed, call_id = pack(input, "input"), pack(tool_call_id, "tool_call_id")
        return await self._process.ask(  # type: ignore[no-any-return]  # the pipeline checks it
            lambda number: Execute(number, self.name, call_id, packed, on_update is not None),
            on_update=on_update,
        )


def _interceptor_of(process: HookProcess, found: Stepping) -> Interceptor:
    point = POINTS[found.point]

    async def step(input: Any, output: Any, ctx: HookContext) -> None:
        noted: list[str] | None = None if point.blocks else []
        pack = Packer(noted).pack
        packed = pack(input, "input"), pack(output, "output")
        # The effects of a call are those of its events.
        place = place_of(ctx, None)
        changed = await process.ask(
            lambda number: Reach(number, found.id, *packed, place),
            lambda request: answered(request, ctx),
            notify=lambda text, kind: ctx.ui.notify(text, kind),
        )
        if noted and holds_any(changed, noted):
            raise TypeError("changed the output to the text of a value that cannot cross between two processes")
        _apply(output, changed)

    step.__qualname__ = found.name
    return Interceptor(
        found.id, found.point, step, found.priority, _matcher_or_none(found.tool), _matcher_or_none(found.agent)
    )


def _apply(output: Struct, changed: Mapping[str, Any]) -> None:
    """Set the fields that an interceptor has changed; the dispatch checks them."""
    for name, value in changed.items():
        whole, _, part = name.partition(".")
        if part:
            setattr(getattr(output, whole), part, value)
        else:
            setattr(output, whole, value)


def _matcher(pattern: str | tuple[str, int]) -> str | re.Pattern[str]:
    return pattern if isinstance(pattern, str) else re.compile(pattern[0], pattern[1])


def _matcher_or_none(pattern: str | tuple[str, int] | None) -> str | re.Pattern[str] | None:
    return None if pattern is None else _matcher(pattern)


class Proxies:
    """Keeps the stand-ins of one hook like the registrations of its process.

    A handler that an event subscribed in an earlier run of the process keeps its stand-in, which fails at every call: a
    gate must not open because its process has ended.
    """

    def __init__(self, api: Registry) -> None:
        self._api = api
        self._handlers: dict[int, RemoteHandler] = {}
        self._undos: dict[str, Undo] = {}
        # The numbers of handlers, and the ids of interceptors, that this run of the process has had.
        self._run = 0
        self._seen: set[int | str] = set()

    def update(self, process: HookProcess, found: Registrations) -> None:
        """Take over the registrations of the process as they are now."""
        if process.run != self._run:
            self._run, self._seen = process.run, set()
        numbers = {each.number for each in found.handlers}
        for number in [each for each in self._handlers if each in self._seen and each not in numbers]:
            self._drop(number)
        for each in found.handlers:
            self._seen.add(each.number)
            process.first = max(process.first, each.number + 1)
            if each.number not in self._handlers:
                handler = self._handlers[each.number] = RemoteHandler(process, self._api, each)
                self._api.handlers.setdefault(each.event, []).append(handler)
        self._take_interceptors(process, found)
        known = {tool.name for tool in self._api.tools}
        self._api.tools += [RemoteTool(process, each) for each in found.tools if each.name not in known]
        self._api.changed()

    def _drop(self, number: int) -> None:
        handler = self._handlers.pop(number)
        self._api.handlers[handler.event].remove(handler)

    def _take_interceptors(self, process: HookProcess, found: Registrations) -> None:
        ids = {each.id for each in found.interceptors}
        for gone in [each for each in self._undos if each in self._seen and each not in ids]:
            self._undos.pop(gone)()
        for each in found.interceptors:
            self._seen.add(each.id)
            if each.id not in self._undos:
                self._undos[each.id] = self._api.adopt(_interceptor_of(process, each))


async def unload(process: HookProcess, api: Registry) -> None:
    """Let the process end its tasks and call its `on_unload` functions, and keep the state that it leaves."""
    state = await process.ask(Unload)
    # A key that the hook has removed does not come back.
    api.state.clear()
    api.state.update(state)
