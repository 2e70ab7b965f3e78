"""The inner side of a runner: plans, lanes, clocks and reports.

`Engine.emit` finds the plan of an event, waits for the lane of its row, and runs a dispatch.  Programs use `HookRunner`,
which has one engine.  The pipeline, the bridges and the host use the engine too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.concurrency.deadlines import INF
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.dispatch.context import Surroundings, Validity
from agent_hooks.dispatch.handlers import Handler, Undo
from agent_hooks.dispatch.inside import refuse_inside
from agent_hooks.dispatch.interceptors import Interceptor, InterceptorRegistry, process_wide
from agent_hooks.dispatch.loop import Dispatch, current_dispatch, get_running, set_running
from agent_hooks.dispatch.plan import Plan
from agent_hooks.dispatch.points import (
    AtPoint,
    BusInput,
    Changed,
    Input,
    MessageBeforeOutput,
    NoOutput,
    PermissionOutput,
    ToolAfterOutput,
)
from agent_hooks.dispatch.table import POINT_SPECS, SPECS, EventSpec
from agent_hooks.errors import HookError, HookUsageError, shown
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.runner.background import Background, Task
from agent_hooks.runner.clocks import Clocks
from agent_hooks.runner.listeners import Listeners, added
from agent_hooks.runner.processes import Processes
from agent_hooks.runner.subscriptions import Subscriptions
from agent_hooks.transformers.base import ANY_TOOL, ConfiguredTransformer, by_tool
from agent_hooks.values.answers import Ask, Block, Cancel, Replace
from agent_hooks.values.events import EVENTS, Event, ToolResult

if TYPE_CHECKING:
    from agent_hooks.dispatch.recording import Recorder, Records
    from agent_hooks.dispatch.remembering import Remembering
    from agent_hooks.guards.base import Guard
    from agent_hooks.redaction import Redactor
    from agent_hooks.runner.generation import Generation

A = TypeVar("A")
O = TypeVar("O", bound=Struct)  # noqa: E741  # an output

# A model may invent names of tools, so the cache of plans starts again past this many.
MANY_PLANS = 4096


class Engine(Listeners, Clocks):
    """Plans and runs the dispatches of one runner.

    `limits`: seconds of own time a handler gets, by the name of the setting; `registry`: the interceptors of the program,
    beside those of the hooks and of the process.
    """

    def __init__(
        self,
        hooks: list[LoadedHook],
        surroundings: Surroundings,
        *,
        limits: dict[str, float | None],
        guards: Iterable[Guard],
        registry: InterceptorRegistry | None,
        transformers: Iterable[ConfiguredTransformer],
        redactor: Redactor | None,
    ) -> None:
        Listeners.__init__(self, redactor)
        Clocks.__init__(self)
        self.hooks = hooks
        self.surroundings = surroundings
        self.guards = tuple(guards)
        # Set when the runner was left: a call that concerns a hook, a guard, a transformer or the redactor is blocked.
        self.left = False
        # Grows with every subscription, so that a plan knows whether it is old.
        self.revision = 0
        # The pipeline's plans of a tool's calls, by tool; emptied with every subscription.
        self.call_plans: dict[str, Any] = {}
        self.interceptors = InterceptorRegistry() if registry is None else registry
        # The interceptors of hooks: in the registry of the program, unless several runners share that one.
        self._own_interceptors = self.interceptors if registry is None else InterceptorRegistry()
        self._registries = tuple(dict.fromkeys((process_wide(), self.interceptors, self._own_interceptors)))
        self._subscriptions = Subscriptions(hooks, self._registries)
        self.processes = Processes(self, hooks)
        self.background = Background(hooks, self.report, self.processes.unload)
        self._validity = Validity()
        self.limits = limits
        self.transformers = tuple(transformers)
        self._transformers = by_tool(self.transformers)
        self._observers: list[Callable[[Event[Any]], object]] = []
        # The lane in which tool calls are judged.
        self.calls_lane = Lane()
        self._lanes = {"life": Lane(), "calls": self.calls_lane}
        self._plans: dict[Any, Plan | None] = {}
        # A second index of the same plans: by class, then by `event.about`.  It saves the route of an event.
        self._plans_by_class: dict[type[Event[Any]], Any] = {}
        # Whether observers or interceptors of the point `event` see every event; whether these or the recorder do.
        self._observed = self._watched = False
        # Writes the records, if there are any; the class of its dispatches notes every handler.
        self.recorder: Recorder | None = None
        # The agent home whose file keeps the person's answers for good, `None` for no such answers.
        self.answers_home: str | None = None
        self._remembering: Remembering | None = None
        # Makes the checkpoints of turns, if there are any: a `pipeline.saving.TurnKeeper`.
        self.keeper: Any = None
        # Shows the person a warning where no UI does; `None` if the program has no place for one.
        self.warn: Callable[[str], object] | None = None
        self._dispatch_type: type[Dispatch] = Dispatch
        ids = [each.id for registry in self._registries for each in registry.list()]
        if twice := [each for each in ids if ids.count(each) > 1]:
            raise HookUsageError(f"there are two interceptors {twice[0]!r}; give one of them another id")
        for registry in self._registries:
            registry.notify(self)
        for hook in hooks:
            hook.api.bind(self)
            for interceptor in hook.api.interceptors:
                self.intercept(hook.path, interceptor)
        self.subscriptions_changed()

    def tell(self, place: Surroundings, text: str) -> None:
        """Show the person a warning: by the UI, or in a headless run by the program that runs the agent."""
        if self.warn is not None and not place.has_ui:
            self.warn(text)
        else:
            place.ui.notify(text, "warning")

    # ---- dispatch

    # How an event is emitted.
    #
    #  1. The plan of the event is looked up, by class and tool.  An event without handlers is over, unless it is watched.
    #  2. A shutdown first stops the handlers that run; its own handlers share the seconds that are left.
    #  3. Events of one lane wait for one another.  An event emitted by a handler, by its tasks or by its thread is nested
    #     in the dispatch of that handler and does not wait.  Neither does a caller that holds the lane (`in_lane`).
    #  4. The first step of `call_handlers` is taken here, by hand.  Most events end in it, without a task, a scope or a
    #     timer; `Dispatch.finish` awaits the rest.
    #  5. However the dispatch ends, its clock is closed and the lane is passed on.
    #  6. Observers see the event as its handlers left it.
    async def emit(
        self, event: Event[A], surroundings: Surroundings | None = None, *, in_lane: bool = False
    ) -> A | None:
        """Call the handlers of `event` and return the combination of their answers; see `HookRunner.emit`.

        `surroundings`: the place the event comes from, for a bridge; `in_lane`: the caller holds the lane of the event.
        """
        try:
            plan = self._plans_by_class[event.__class__]
            if plan.__class__ is dict:
                plan = plan[event.about]
        except KeyError:
            plan = self._plan_for(event)
        if plan is None:
            if self._watched:
                await self._show(event, surroundings, None)
            return None
        if plan.spec.total is not None:
            plan = replace(plan, limit=max(plan.limit - await self.stop_handlers(), 0.001))
        lane = plan.lane
        if lane is not None:
            if in_lane:
                lane = None
            elif not lane.busy:
                lane.busy = True
            elif current_dispatch(self) is not None:
                lane = None
            else:
                plan = await self._plan_in_turn(plan, event, lane)
                if plan is None:
                    return None
        parent = get_running()
        while parent is not None and not parent.live:
            parent = parent.parent
        dispatch = self._dispatch_type()
        dispatch.plan = plan
        dispatch.event = event
        dispatch.surroundings = self.surroundings if surroundings is None else surroundings
        dispatch.parent = parent
        dispatch.live = True
        dispatch.clock = dispatch.outcome = None
        set_running(dispatch)
        try:
            if self.watches_early:
                dispatch.need_clock()
            steps: Any = dispatch.call_handlers(plan.handlers)
            # A `for` takes the first step without the exception that `send` ends in.
            for waiting in steps:
                await dispatch.finish(steps, waiting)
                break
        finally:
            dispatch.live = False
            clock: Any = dispatch.clock
            if clock is not None:
                clock.close()
            if lane is not None:
                if lane.waiting:
                    lane.leave()
                else:
                    lane.busy = False
        if self._watched and (self._observed or plan.tool_name is None):
            # The recorder takes the steps of a tool's events from the call.
            await self._show(dispatch.event, surroundings, dispatch)
        return dispatch.outcome  # type: ignore[no-any-return]  # a row's fold made it

    async def _plan_in_turn(self, plan: Plan, event: Event[Any], lane: Lane) -> Plan | None:
        """Wait for the lane and return the plan of an event as it is then; without a plan the lane is left again."""
        revision = self.revision
        await lane.enter()
        try:
            current = plan if self.revision == revision else self._plan_for(event)
        # The runner was left meanwhile.
        except BaseException:
            lane.leave()
            raise
        if current is None:
            lane.leave()
        return current

    async def reach(
        self,
        point: str,
        input: Input,
        output: O,
        surroundings: Surroundings | None = None,
        *,
        key: str | None = None,
        in_lane: bool = False,
    ) -> O | Block:
        """Let the interceptors of `point` change `output`, and return the changed output, or the block of one of them.

        `key`: the tool's name or the agent's id that matchers are searched in; the agent's id unless given.
        """
        key = (surroundings or self.surroundings).agent_id if key is None else key
        if not self.intercepts(point, key):
            return output
        event = AtPoint(point=point, key=key, input=input, output=output)
        answer = await self.emit(event, surroundings, in_lane=in_lane)
        return answer.output if isinstance(answer, Changed) else answer or output

    async def pass_message(
        self, input: Input, output: MessageBeforeOutput, surroundings: Surroundings | None = None
    ) -> MessageBeforeOutput | Block:
        """Let the interceptors of `message.before` change or block a message, and record it."""
        recorder = self.recorder
        if recorder is None:
            return await self.reach("message.before", input, output, surroundings)
        trail = recorder.prompt(output.message)
        outer = recorder.enter(trail)
        try:
            answer = await self.reach("message.before", input, output, surroundings)
        finally:
            recorder.enter(outer)
        recorder.prompted(trail, answer, surroundings)
        return answer

    async def _show(self, event: Event[Any], surroundings: Surroundings | None, dispatch: Dispatch | None) -> None:
        """Show an event to the recorder, the observers, and the interceptors of the point `event`."""
        if isinstance(event, AtPoint):
            # Reaching a point is no event.
            return
        if self.recorder is not None:
            self.recorder.happened(event, surroundings or self.surroundings, dispatch)
            if not self._observed:
                return
        if self.redactor is not None and isinstance(event, ToolResult):
            # The pipeline redacts a result after its handlers, and so after this.
            event = self.redactor.event(event)
        for observer in tuple(self._observers):
            self.notify(observer, event)
        await self.reach("event", BusInput(event=event), NoOutput(), surroundings)

    # ---- plans

    def listens(self, route: Any) -> bool:
        """Tell whether a handler or an observer would see an event of this `route` (see `Event.route`)."""
        return self._observed or self._plan(route) is not None

    def intercepts(self, point: str, key: str | None = None) -> bool:
        """Tell whether there is an interceptor of `point` for that tool, or for that agent."""
        return self._plan((point, self.surroundings.agent_id if key is None else key)) is not None

    def transformers_of(self, tool_name: str) -> tuple[ConfiguredTransformer, ...]:
        """Return the transformers that are configured for a tool, those of every tool first."""
        everywhere, found = self._transformers.get(ANY_TOOL, ()), self._transformers.get(tool_name, ())
        return (*everywhere, *found) if everywhere else found

    def concerns_tools(self) -> bool:
        """Tell whether any tool's calls may concern a handler, an interceptor, a guard, a transformer or a redactor."""
        others = bool(self.guards or self.redactor or self._transformers) or self._watched
        return others or self._subscriptions.concern_tools()

    def has_handlers(self, event_type: str) -> bool:
        """Tell whether any handler is subscribed to events of this type."""
        return self._subscriptions.has(event_type)

    def handlers(self) -> Iterable[Handler]:
        """Return every handler, in load order, then those of interceptors."""
        return iter(self._subscriptions)

    def unmatchable(self, tools: set[str]) -> list[HookError]:
        """Return a report of every handler and interceptor whose matcher takes none of the known `tools`."""
        return self._subscriptions.unmatchable(tools)

    def _plan_for(self, event: Event[Any]) -> Plan | None:
        """Return the plan of an event, and keep it where `emit` looks first.

        Raises `HookUsageError` for a value that is no event, and for an event that needs an entered runner.
        """
        refuse_inside("runner.emit(...)")
        route = event.route if isinstance(event, Event) else None
        if not _known(route):
            names = ", ".join(kind.__name__ for kind in EVENTS)
            raise HookUsageError(f"emit wants an event ({names}), not {shown(event)}")
        self._refuse(_spec_of(route))
        revision = self.revision
        plan = self._plan(route)
        if self.revision == revision:
            if event.about is None:
                self._plans_by_class[event.__class__] = plan
            else:
                self._plans_by_class.setdefault(event.__class__, {})[event.about] = plan
        return plan

    def _refuse(self, spec: EventSpec) -> None:
        """Raise `HookUsageError` when the runner has been left, or was not entered although a hook started a task.

        The events of no lane are passed on all the same: they are about a result that is there already.
        """
        if spec.lane is None:
            return
        if self.left:
            raise HookUsageError(LEFT)
        if self.background.queued:
            hooks = ", ".join(sorted({hook for hook, _ in self.background.queued}))
            raise HookUsageError(f"{hooks} started a background task: use `async with HookRunner(...) as runner:`")
        if self.processes.waiting:
            hooks = ", ".join(self.processes.waiting)
            raise HookUsageError(f"{hooks} has a process of its own: use `async with HookRunner(...) as runner:`")

    def _plan(self, route: Any) -> Plan | None:
        try:
            return self._plans[route]
        except KeyError:
            pass
        revision = self.revision
        name, key = route if isinstance(route, tuple) else (route, None)
        spec = _spec_of(route)
        if len(self._plans) > MANY_PLANS:
            self._plans.clear()
            self._plans_by_class.clear()
        handlers = self._subscriptions.handlers(name, key, spec)
        limit = self.limits[spec.deadline] if spec.deadline else spec.total
        lane = self._lanes[spec.lane] if spec.lane else None
        limit = INF if limit is None else limit
        plan: Plan | None = Plan(self, spec, tuple(handlers), limit, key, lane, self._validity)
        if not handlers and spec.total is None:
            # A shutdown keeps its plan: it stops the handlers that run also when none listens to it.
            plan = None
        if self.revision != revision:
            # Another thread subscribed meanwhile.
            return self._plan(route)
        self._plans[route] = plan
        return plan

    async def leave(self) -> None:
        """Abort the calls that run, and block every later one that a gate concerns.

        A handler that judges is stopped, which blocks; a tool or a question is cancelled, and its observers hear of the
        abort.  All that takes a bounded time (see `abort`).
        """
        self.left = True
        self._subscriptions.freeze()
        self.subscriptions_changed()
        await self.abort()

    # ---- for the api of a hook

    def subscriptions_changed(self) -> None:
        """Drop all plans; may be called from a handler's thread, also while a plan is being made."""
        self.revision += 1
        self._observed = bool(self._observers) or any(
            each.name == "event" for registry in self._registries for each in registry.list()
        )
        self._watched = self._observed or self.recorder is not None
        self._plans.clear()
        self._plans_by_class.clear()
        self.call_plans.clear()

    @property
    def remembering(self) -> Remembering:
        """The memory for the person's answers."""
        if self._remembering is None:
            # Imported here, because few calls are asked about.
            from agent_hooks.remembering.memory import Memory
            from agent_hooks.remembering.store import Store

            self._remembering = Memory(self, None if self.answers_home is None else Store(self.answers_home))
        return self._remembering

    @remembering.setter
    def remembering(self, memory: Remembering) -> None:
        self._remembering = memory

    def record(self, records: Records) -> None:
        """Write records from now on."""
        self.recorder = records.recorder(self)
        self._dispatch_type = self.recorder.dispatch_type
        self.subscriptions_changed()

    async def emit_reload(self, event: Event[Any], deaf: Collection[str]) -> None:
        """Emit the `session` event of a reload to all hooks but the `deaf` ones; the caller holds its lane."""
        self._subscriptions.deaf = frozenset(deaf)
        self.subscriptions_changed()
        outer = current_dispatch()
        try:
            await self.emit(event, in_lane=True)
        finally:
            # The timers of the next steps would keep this dispatch, and so the old hooks, alive for seconds.
            set_running(outer)
            self._subscriptions.deaf = frozenset()
            self.subscriptions_changed()

    async def enter_lanes(self) -> None:
        """Wait until no event of a lane is dispatched, and let none begin until `leave_lanes`."""
        entered: list[Lane] = []
        try:
            for lane in self._lanes.values():
                await lane.enter()
                entered.append(lane)
        # The caller was cancelled while it waited.
        except BaseException:
            for lane in entered:
                lane.leave()
            raise

    def leave_lanes(self) -> None:
        """Let the events of all lanes go on."""
        for lane in self._lanes.values():
            lane.leave()

    def freeze(self) -> None:
        """Keep today's handlers until `thaw`: a gate that unsubscribes while its hook is unloaded does not open."""
        self._subscriptions.freeze()
        self.subscriptions_changed()

    def thaw(self) -> None:
        """Let subscriptions count again."""
        self._subscriptions.thaw()
        self.subscriptions_changed()

    def ids_of_others(self, hooks: Collection[str]) -> set[str]:
        """Return the ids of all interceptors but those of these hooks."""
        return {
            each.id
            for registry in self._registries
            for each, handler in registry.handlers()
            if handler.hook not in hooks
        }

    def swap(self, generation: Generation, leaving: Sequence[LoadedHook], coming: Sequence[LoadedHook]) -> None:
        """Put a generation in the place of the one in force: its hooks, guards, transformers, redactor and limits."""
        paths = {hook.path for hook in leaving}
        self._own_interceptors.remove_those_of(paths)
        for hook in leaving:
            hook.api.bindings.discard(self)
        if all(hook in leaving for hook in self.hooks):
            # While a hook stays, its contexts stay valid, and they cannot be told from those of the hooks that leave.
            self._validity.ended = True
            self._validity = Validity()
        # In place, because the subscriptions and the background share this list.
        self.hooks[:] = generation.hooks
        self.guards = generation.guards
        self.redactor = generation.redactor
        self.limits = generation.limits
        self.transformers = generation.transformers
        self._transformers = by_tool(self.transformers)
        self._subscriptions.forget(paths)
        for hook in coming:
            hook.api.bind(self)
            for interceptor in hook.api.interceptors:
                self.intercept(hook.path, interceptor)
        if self.recorder is not None:
            self.recorder.renew(generation.records, [hook.path for hook in self.hooks if hook not in coming])
        self.subscriptions_changed()

    def intercept(self, hook: str, interceptor: Interceptor) -> Undo:
        """Register an interceptor of a hook with this runner only, and return a function that removes it again."""
        return self._own_interceptors.add(interceptor, hook=hook)

    def has_interceptor(self, id: str) -> bool:
        """Tell whether an interceptor of that id counts in this runner, beside those of the process."""
        return id in self.interceptors or id in self._own_interceptors

    def start_task(self, hook: str, function: Task) -> None:
        """Run a background task of a hook; queue it until the runner is entered."""
        self.background.add(hook, function)
        # No plan may be kept while a task waits for the runner to be entered.
        self.subscriptions_changed()

    def observe(self, listener: Callable[[Event[Any]], object]) -> Undo:
        """Add an observer."""
        undo = added(self._observers, listener)

        def stop() -> None:
            undo()
            self.subscriptions_changed()

        self.subscriptions_changed()
        return stop

    def disable(self, hook_path: str) -> None:
        """Disable a hook: its gates block from now on, its other handlers are left out.

        A hook in a process of its own stays in force: the process is killed, and another one is as good as new.
        """
        if any(hook.path == hook_path and hook.process is not None for hook in self.hooks):
            return
        self._subscriptions.disable(hook_path)
        self.subscriptions_changed()

    def counts(self, hook_path: str, answer: Any) -> bool:
        """Return whether an answer of a hook is taken into account.

        A former version denies, asks and changes results.  Its other answers are dropped.  A hook that no user has taken
        up settles no question.
        """
        settles = isinstance(answer, Changed) and isinstance(answer.output, PermissionOutput)
        for hook in self.hooks:
            if hook.path == hook_path and (hook.former_of or hook.waits):
                # Redaction of a result, for example.
                changes = isinstance(answer, Changed) and isinstance(answer.output, ToolAfterOutput)
                strict = changes or isinstance(answer, Block | Ask | Cancel | Replace)
                strict = strict or (settles and answer.output.status == "deny")
                return strict or not (hook.former_of or settles)
        return True

    def is_disabled(self, hook_path: str) -> bool:
        """Tell whether a hook is disabled."""
        return self._subscriptions.is_disabled(hook_path)


LEFT = (
    "this HookRunner was left, so its hooks judge nothing any more; make calls inside of `async with HookRunner(...)`"
)


def _spec_of(route: Any) -> EventSpec:
    """Return the row of an event or a point."""
    name = route[0] if isinstance(route, tuple) else route
    return POINT_SPECS.get(name) or SPECS[name]


def _known(route: Any) -> bool:
    """Tell whether the tables have a row for a route; another agent's events, for example, have none."""
    name = route[0] if isinstance(route, tuple) else route
    return name in SPECS or name in POINT_SPECS
