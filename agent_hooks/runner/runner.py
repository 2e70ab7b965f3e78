"""The runner: what an event's dispatch is planned from, when it waits for others, and who hears of failures.

`emit` looks up a plan (the handlers of an event and tool, sorted, with the event's row of the dispatch table), waits for
the lane of that row, and runs a `Dispatch`.  Above: pipeline, host.  Below: subscriptions, dispatch, background, lanes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from os import fspath
from os.path import abspath
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.concurrency.deadlines import INF, Clock, Onlooker, StillClock, Timer, clock_type
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.dispatch.context import Mode
from agent_hooks.dispatch.handlers import Handler, Undo
from agent_hooks.dispatch.interceptors import Interceptor, InterceptorRegistry
from agent_hooks.dispatch.loop import Dispatch, Plan, current_dispatch, get_running, set_running
from agent_hooks.dispatch.points import AtPoint, BusInput, Changed, Input, NoOutput
from agent_hooks.dispatch.stats import HandlerStats
from agent_hooks.dispatch.table import POINT_SPECS, SPECS
from agent_hooks.errors import HookError, HookUsageError, log, shown
from agent_hooks.guards.base import Guard
from agent_hooks.hooks.loader import LoadedHook, LoadResult
from agent_hooks.runner.background import Background, Task
from agent_hooks.runner.subscriptions import Subscriptions
from agent_hooks.runner.watchdog import Watchdog
from agent_hooks.settings import DEFAULT_TIMEOUT
from agent_hooks.transformers.base import ConfiguredTransformer, by_tool
from agent_hooks.ui.base import UI, SilentUI
from agent_hooks.validation import check_timeout
from agent_hooks.values.answers import Block
from agent_hooks.values.content import Attachment
from agent_hooks.values.events import Event, ToolResult

if TYPE_CHECKING:
    from pathlib import Path

    from agent_hooks.redaction import Redactor

A = TypeVar("A")
O = TypeVar("O", bound=Struct)  # noqa: E741  # of a point
SendHandler = Callable[[str, Sequence[Attachment], str], object]

DRAIN_TIMEOUT = 1.5  # seconds a shutdown waits for what it cancelled
_MANY_PLANS = 4096  # tool names are the model's to invent; the cache of plans starts anew past this many


class Audience(Struct, frozen=True):
    """Who would see an event about one tool; made once per tool, until somebody subscribes.

    `nobody`: its calls concern no one; `anybody`: calls of some tool, which this one might make, concern someone.
    """

    before_tool_call: bool
    tool_call: bool
    tool_result: bool
    after_tool_call: bool
    before_point: bool
    after_point: bool
    nobody: bool
    anybody: bool
    transformers: tuple[ConfiguredTransformer, ...] = ()


class _Unknown:
    """Stands for no plan yet, where `None` is a plan without handlers."""


_UNKNOWN = _Unknown()
_EVERYBODY = Audience(True, True, True, True, True, True, nobody=False, anybody=True)
TOOL_EVENTS = ("before_tool_call", "tool_call", "tool_result", "after_tool_call")  # these two as in Audience
TOOL_POINTS = ("tool.before", "tool.after")


class HookRunner:
    """Dispatches events to the handlers of loaded hooks.

    `hooks`: what `load_hooks` or `discover_and_load_hooks` returned, with which a hook that could not be loaded blocks
    every tool call; or only the hooks of it, without that.
    `timeout`: seconds of its own time a handler gets on events with a deadline, `None` for no limit;
    `tool_call_timeout`: the same for `tool_call` and off by default; `ui`: how handlers ask the person, `None` for
    nobody; `mode`, `session_file`, `session_id`: what handlers see in their context; `guards`: vetoes of tool calls, none
    unless given (`builtin_guards()`); `transformers`: what `load_transformers` read, or your own; `redactor`: what hides
    secrets in every result and progress update.

    Use it as `async with HookRunner(...) as runner`: that runs the hooks' background tasks, and on leaving ends them and
    calls `on_unload`.  Without, `emit` works as long as no hook has queued a task.
    Raises `SettingsError` for a deadline that cannot be one.
    """

    def __init__(
        self,
        hooks: Iterable[LoadedHook] | LoadResult,
        *,
        cwd: str | Path,
        timeout: float | None = DEFAULT_TIMEOUT,
        tool_call_timeout: float | None = None,
        ui: UI | None = None,
        mode: Mode = "embedded",
        session_file: str | Path | None = None,
        session_id: str | None = None,
        guards: Iterable[Guard] = (),
        interceptors: InterceptorRegistry | None = None,
        transformers: Iterable[ConfiguredTransformer] = (),
        redactor: Redactor | None = None,
    ) -> None:
        self.hooks = hooks.fail_closed() if isinstance(hooks, LoadResult) else list(hooks)
        if wrong := [hook for hook in self.hooks if not isinstance(hook, LoadedHook)]:
            raise HookUsageError(
                f"HookRunner wants loaded hooks, not {shown(wrong[0])}: await load_hooks([...], cwd=…)"
            )
        self.cwd = abspath(fspath(cwd))
        self.guards = tuple(guards)
        self.mode: Mode = mode
        self.session_id = session_id or uuid.uuid4().hex
        self.agent_id = "main"
        self.session_file: str | None = None
        self.timer: Timer | None = None  # the event loop's, unless a test steps time by hand
        self._limits = {
            "hook_timeout": check_timeout(timeout, "HookRunner(timeout=…)"),
            "tool_call_timeout": check_timeout(tool_call_timeout, "HookRunner(tool_call_timeout=…)"),
        }
        self._error_listeners: list[Callable[[HookError], object]] = []
        self._observers: list[Callable[[Event[Any]], object]] = []
        self._answer_listeners: list[Callable[[Handler, Event[Any], Any], object]] = []
        self._plans: dict[Any, Plan | None] = {}
        self._known_plans: dict[type[Event[Any]], Any] = {}  # the same, by what is quicker to find
        self._audiences: dict[str, Audience] = {}
        self._lanes = {"life": Lane(), "calls": Lane()}
        self.suspended: set[Clock] = set()
        self._generation = 0  # of subscriptions
        self._send_handler: SendHandler | None = None
        self._known_tools: set[str] = set()
        self.matchers_checked = False
        self._transformers = by_tool(tuple(transformers))
        self.redactor = redactor
        self._clock_type: type[Clock] | None = None
        self._needs_clock = True  # of the first dispatch, which finds out whether each one does
        self._undo_at_end: list[Undo] = []
        self._watched = False  # whether somebody sees every event
        self.interceptors = InterceptorRegistry() if interceptors is None else interceptors
        self._subscriptions = Subscriptions(self.hooks, self.interceptors)
        self.set_ui(ui)
        self.set_session_file(session_file)
        self._background = Background(self.hooks, self.report)
        self._watchdog = Watchdog(self, self.suspended, self.report)
        for hook in self.hooks:
            hook.api.bind(self)
            for interceptor in hook.api.interceptors:
                self.intercept(hook.path, interceptor)
        self.interceptors.tell(self)
        self.subscriptions_changed()

    # ---- lifetime

    async def __aenter__(self) -> Self:
        await self._background.start()
        self._watchdog.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._background.end()
        finally:
            self._watchdog.stop()
            for undo in self._undo_at_end:
                undo()

    # ---- what a program tells the runner

    def on_error(self, listener: Callable[[HookError], object]) -> Undo:
        """Call `listener` with every failure of a handler, task or answer; returns a function that undoes it.

        Without a listener failures are logged, to the logger `agent_hooks`.
        """
        return _add(self._error_listeners, listener)

    def observe(self, listener: Callable[[Event[Any]], object]) -> Undo:
        """Call `listener` with every event after its handlers, as they left it; returns a function that undoes it."""
        undo = _add(self._observers, listener)

        def stop() -> None:
            undo()
            self.subscriptions_changed()

        self.subscriptions_changed()
        return stop

    def on_answer(self, listener: Callable[[Handler, Event[Any], Any], object]) -> Undo:
        """Call `listener(handler, event, answer)` with every value a handler returned; returns the undo."""
        return _add(self._answer_listeners, listener)

    def set_ui(self, ui: UI | None) -> None:
        """Let handlers ask the person through `ui`; `None` for nobody."""
        self.ui: UI = SilentUI() if ui is None else ui
        self.has_ui = ui is not None

    def set_session_file(self, path: str | Path | None, *, session_id: str | None = None) -> None:
        """Tell handlers which file the session is in now, and its id when that changed too."""
        if path != self.session_file:  # another agent tells it at each event
            self.session_file = None if path is None else abspath(fspath(path))
        self.session_id = session_id or self.session_id

    def set_send_handler(self, handler: SendHandler | None) -> None:
        """Let `api.send` call `handler(text, attachments, source)`, `source` being the hook's path; from any thread."""
        self._send_handler = handler

    def know_tools(self, names: Iterable[str]) -> None:
        """Tell the runner which tools there are, for `check_matchers`."""
        self._known_tools.update(names)

    def check_matchers(self) -> list[HookError]:
        """Report every handler and interceptor that can match none of the known tools; return the reports.

        Call it once all tools are known; the first call of a wrapped tool does, if nobody has.
        """
        self.matchers_checked = True
        reports = self._subscriptions.unmatchable(self._known_tools)
        for report in reports:
            self.report(report)
        return reports

    # ---- what a program asks the runner

    def has_handlers(self, event_type: str) -> bool:
        """Tell whether any handler is subscribed to events of this type."""
        return self._subscriptions.has(event_type)

    def listens(self, route: Any) -> bool:
        """Tell whether anybody would see an event of this `route` (see `Event.route`)."""
        return self._watched or self._plan(route) is not None

    def intercepts(self, point: str, key: str | None = None) -> bool:
        """Tell whether there is an interceptor of `point` for that tool, or for this agent."""
        return self._plan((point, self.agent_id if key is None else key)) is not None

    def audience(self, tool_name: str) -> Audience:
        """Tell who would see a call of that tool."""
        try:
            return self._audiences[tool_name]
        except KeyError:
            pass
        if self._background.queued:
            return _EVERYBODY  # so that `emit` is asked, which says what is wrong
        generation = self._generation
        listening = [self.listens((event, tool_name)) for event in TOOL_EVENTS]
        intercepting = [self.intercepts(point, tool_name) for point in TOOL_POINTS]
        steps = self._transformers.get(tool_name, ())
        others = bool(self.guards or self.redactor or self._transformers)
        anybody = others or self._watched or any(self.has_handlers(event) for event in TOOL_EVENTS)
        anybody = anybody or any(each.name in TOOL_POINTS for each in self.interceptors.list())
        nobody = not (any(listening + intercepting) or steps or self.guards or self.redactor)
        audience = Audience(*listening, *intercepting, nobody=nobody, anybody=anybody, transformers=steps)  # type: ignore[misc, arg-type]  # as many as there are fields
        if len(self._audiences) > _MANY_PLANS:
            self._audiences.clear()
        if self._generation == generation:
            self._audiences[tool_name] = audience
        return audience

    def stats(self) -> list[HandlerStats]:
        """Return how often each handler ran and failed, and how long it took, in load order."""
        return [
            HandlerStats(h.hook, h.event, h.name, h.stats.count, h.stats.failures, h.stats.p50, h.stats.max)
            for h in self._subscriptions
        ]

    # ---- Binding: what a hook's api asks

    def subscriptions_changed(self) -> None:
        """Plan anew from the next dispatch on; may come from a handler's thread, also in the middle of planning."""
        self._generation += 1
        self._watched = bool(self._observers) or any(each.name == "event" for each in self.interceptors.list())
        self._plans.clear()
        self._known_plans.clear()
        self._audiences.clear()

    def intercept(self, hook: str, interceptor: Interceptor) -> Undo:
        """Register an interceptor of a hook; until the runner is left."""
        undo = self.interceptors.add(interceptor, hook=hook)
        self._undo_at_end.append(undo)
        return undo

    def start_task(self, hook: str, function: Task) -> None:
        """Run a hook's background task; queued until the runner is entered."""
        self._background.add(hook, function)
        self.subscriptions_changed()  # while it waits to be started, no plan is made

    def send(self, hook: str, text: str, attachments: Sequence[Attachment]) -> None:
        """Hand a hook's message to whoever runs the agent; with nobody there, warn."""
        if self._send_handler is None:
            log().warning("%s: a message was not sent, because this agent takes none: %s", hook, shown(text))
        else:
            self._send_handler(text, attachments, hook)

    # ---- dispatch

    async def emit(self, event: Event[A], *, in_lane: bool = False) -> A | None:
        """Call every handler of `event`, in order, and return what their answers combine to, or `None`.

        Emits that must not overlap wait for one another, first in, first out; one from within a handler, its tasks or
        its thread runs at once, and so does one by a caller that holds the lane itself (`in_lane`, see `calls_lane`).
        Raises `HookUsageError` when a hook has queued a task and the runner was not entered.
        """
        try:
            plan = self._known_plans[event.__class__]
            if plan.__class__ is dict:
                plan = plan[event.about]
        except KeyError:
            plan = self._plan_for(event)
        if plan is None:
            if self._watched:
                await self._show(event)
            return None
        if plan.spec.total is not None:
            plan = replace(plan, limit=max(plan.limit - await self._stop_running(), 0.001))
        lane = plan.lane
        if lane is not None:
            if in_lane:
                lane = None
            elif not lane.busy:
                lane.busy = True
            elif current_dispatch(self) is not None:
                lane = None  # nested: it runs at once, in the turn of the dispatch around it
            else:
                await lane.enter()
        parent = get_running()
        while parent is not None and not parent.live:
            parent = parent.parent
        dispatch = Dispatch()
        dispatch.plan = plan
        dispatch.event = event
        dispatch.parent = parent
        dispatch.live = True
        dispatch.clock = dispatch.outcome = None
        set_running(dispatch)
        try:
            if self._needs_clock:
                dispatch.need_clock()
            steps: Any = dispatch.call_handlers(plan.handlers)  # a generator, as which it is taken here
            for waiting in steps:  # the first step; cheaper than `send`, which ends in an exception
                await dispatch.go_on(steps, waiting)
                break
        finally:
            dispatch.live = False
            clock: Any = dispatch.clock  # for all that mypy knows it is still `None`
            if clock is not None:
                clock.close()
            if lane is not None:
                if lane.waiting:
                    lane.leave()
                else:
                    lane.busy = False
        if self._watched:
            await self._show(dispatch.event)
        return dispatch.outcome  # type: ignore[no-any-return]  # what a row's fold makes of the answers

    async def emit_tool_call(self, event: Event[A]) -> A | None:
        """Do the same as `emit`; the name other hook systems have for it."""
        return await self.emit(event)

    def calls_lane(self) -> Lane | None:
        """Return the lane that judging tool calls takes; `None` within a dispatch, where nobody waits."""
        lane = self._lanes["calls"]
        return None if lane.busy and current_dispatch(self) is not None else lane

    async def reach(
        self, point: str, input: Input, output: O, *, key: str | None = None, in_lane: bool = False
    ) -> O | Block:
        """Let the interceptors of `point` change `output`, and return what they made of it, or the block of one.

        `key`: what their matchers are searched in, the agent's id unless given; `in_lane` as of `emit`.
        """
        key = self.agent_id if key is None else key
        if not self.intercepts(point, key):
            return output
        answer = await self.emit(AtPoint(point=point, key=key, input=input, output=output), in_lane=in_lane)
        return answer.output if isinstance(answer, Changed) else answer or output

    async def _show(self, event: Event[Any]) -> None:
        """Show an event to the observers and to whoever intercepts the bus; a point that is reached is no event."""
        if isinstance(event, AtPoint):
            return
        if self.redactor is not None and isinstance(event, ToolResult):  # it is redacted only after its handlers
            event = self.redactor.event(event)
        for observer in tuple(self._observers):
            self._tell(observer, event)
        await self.reach("event", BusInput(event=event), NoOutput())

    def _plan(self, route: Any) -> Plan | None:
        known = self._plans.get(route, _UNKNOWN)
        if not isinstance(known, _Unknown):
            return known
        generation = self._generation
        name, tool_name = route if isinstance(route, tuple) else (route, None)
        spec = POINT_SPECS.get(name) or SPECS[name]
        if self._background.queued and spec.lane is not None:  # a result that is there is passed on all the same
            hooks = ", ".join(sorted({hook for hook, _ in self._background.queued}))
            raise HookUsageError(f"{hooks} started a background task: use `async with HookRunner(...) as runner:`")
        if len(self._plans) > _MANY_PLANS:
            self._plans.clear()
            self._known_plans.clear()
        handlers = self._subscriptions.handlers(name, tool_name, spec)
        limit = self._limits[spec.deadline] if spec.deadline else spec.total
        lane = self._lanes[spec.lane] if spec.lane else None
        plan: Plan | None = Plan(self, spec, tuple(handlers), INF if limit is None else limit, tool_name, lane)
        if not handlers and spec.total is None:  # a shutdown stops what runs, also when nobody listens to it
            plan = None
        if self._generation != generation:  # what was planned from is old already
            return self._plan(route)
        self._plans[route] = plan
        return plan

    def _plan_for(self, event: Event[Any]) -> Plan | None:
        """Return the plan of an event, and keep it where `emit` looks first."""
        route = event.route
        plan = self._plan(route)
        if route not in self._plans:  # it is old already
            return plan
        if event.about is None:
            self._known_plans[event.__class__] = plan
        else:
            self._known_plans.setdefault(event.__class__, {})[event.about] = plan
        return plan

    def make_clock(self, limit: float, parent: Clock | None) -> Clock:
        """Return a clock of the running backend, nested in `parent`."""
        kind = self._clock_type or self._find_clock_type()
        return kind(limit, self.suspended, parent, self.timer)

    def onlooker(self) -> Onlooker:
        """Return what tells cancellations of the current task apart."""
        return (self._clock_type or self._find_clock_type()).onlooker()

    def _find_clock_type(self) -> type[Clock]:
        kind = clock_type()
        if kind is not StillClock:  # else the next dispatch may have an event loop
            self._clock_type, self._needs_clock = kind, kind.early
        return kind

    async def _stop_running(self) -> float:
        """Before a shutdown: cancel the handlers that run, and give them a moment to end; return the seconds it took."""
        begun = perf_counter()
        own = set()
        dispatch = current_dispatch()
        while dispatch is not None:
            own.add(dispatch.clock)
            dispatch = dispatch.parent
        if self.suspended - own:
            import anyio  # here, for nothing is suspended where no event loop runs

            with anyio.move_on_after(DRAIN_TIMEOUT):
                while running := self.suspended - own:
                    for clock in running:
                        clock.shut_down()
                    await anyio.sleep(0.005)
        return perf_counter() - begun

    # ---- reports

    def report(self, error: HookError) -> None:
        """Tell every error listener; one that raises is logged and changes nothing."""
        if not self._error_listeners:
            log().error("%s\n%s", error, error.traceback)
        for listener in tuple(self._error_listeners):
            self._tell(listener, error)

    def disable(self, hook_path: str) -> None:
        """Call no handler of a hook any more: its gates block, the others are left out."""
        self._subscriptions.disable(hook_path)
        self.subscriptions_changed()

    def is_disabled(self, hook_path: str) -> bool:
        """Tell whether a handler of that hook would not stop."""
        return self._subscriptions.is_disabled(hook_path)

    def answered(self, handler: Handler, event: Event[Any], answer: Any) -> None:
        """Tell the answer listeners."""
        for listener in tuple(self._answer_listeners):
            try:
                listener(handler, event, answer)
            except Exception:  # a listener is a bystander
                log().exception("an answer listener raised")

    def _tell(self, listener: Callable[[Any], object], what: object) -> None:
        try:
            listener(what)
        except Exception:  # a listener is a bystander: it must not break the dispatch
            log().exception("a listener raised on: %s", what)


def _add(listeners: list[Any], listener: Any) -> Undo:
    listeners.append(listener)

    def undo() -> None:
        if listener in listeners:
            listeners.remove(listener)

    return undo
