"""The one loop: the only code that calls handlers.

A `Plan` says which handlers an event has and which row of the table applies to it.  A `Dispatch` is one event on its way
through that plan.  The runner makes both; see `Engine.emit`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import ContextVar
from time import perf_counter
from types import CoroutineType
from typing import Any, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.concurrency.deadlines import Clock, DidNotStopError, drive
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.dispatch.context import HookContext, Surroundings, forgotten_await
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.points import Changed
from agent_hooks.dispatch.table import EventSpec, OnError, read_answer, spec_name
from agent_hooks.errors import HookError, HookUsageError, Outcome, describe, hook_error, shown
from agent_hooks.values.answers import Answer, Ask, Block, Cancel, Cause, Continue, Rewrite
from agent_hooks.values.events import Event


class Plan(Struct, frozen=True, eq=False):
    """The handlers of one kind of event, in order; made once per event type, reason and tool.

    `limit`: seconds of its own time that each handler gets; `tool_name`: the tool, if the event is about one, or the
    agent's id at a point of the agent; `lane`: the lane the event waits in, if any.
    """

    owner: Owner
    spec: EventSpec
    handlers: tuple[Handler, ...]
    limit: float
    tool_name: str | None
    lane: Lane | None


class Owner(Protocol):
    """The engine, as far as a dispatch uses it."""

    def make_clock(self, limit: float, parent: Clock | None) -> Clock:
        """Return a clock of the running backend, nested in `parent`."""
        ...

    def disable(self, hook_path: str) -> None:
        """Disable a hook: its gates block from now on, its other handlers are left out."""

    def is_disabled(self, hook_path: str) -> bool:
        """Tell whether a hook is disabled."""
        ...

    def intercept(self, hook: str, interceptor: Any) -> Callable[[], None]:
        """Register an interceptor of a hook and return a function that removes it again."""
        ...

    def answered(self, handler: Handler, event: Event[Any], answer: Any) -> None:
        """Take note of a value that a handler returned."""

    def report(self, error: HookError) -> None:
        """Take note of a failure."""


class Dispatch:
    """One event on its way through its handlers.

    The emitting code fills in the slots, because a constructor would cost as much as the rest of a short event.  It puts
    the dispatch into `running`, awaits `call_handlers`, sets `live` to `False` and closes the clock if there is one.
    """

    __slots__ = ("clock", "event", "handler", "live", "outcome", "parent", "plan", "started", "surroundings")

    plan: Plan
    event: Any
    surroundings: Surroundings
    # The dispatch that this one is nested in.
    parent: Dispatch | None
    live: bool
    # The answers so far, combined by the row's fold.
    outcome: Any
    # Made when a handler suspends or opens a dialog.
    clock: Clock | None
    # The time at which the last timed handler ended, or the dispatch began.
    started: float
    # The running handler.
    handler: Handler

    @property
    def owner(self) -> Owner:
        """The runner."""
        return self.plan.owner

    @property
    def tool_name(self) -> str | None:
        """The tool that the event is about, `None` for other events."""
        return self.plan.tool_name

    def need_clock(self) -> Clock:
        """Return the clock of the dispatch; make it if there is none yet."""
        clock = self.clock
        if clock is None:
            parent = None if self.parent is None else self.parent.need_clock()
            clock = self.clock = self.plan.owner.make_clock(self.plan.limit, parent)
            clock.dispatch = self
        return clock

    async def dialog(self, title: str, message: str, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Open a dialog of the running handler and return the answer; a recorded dispatch writes both down."""
        return await ask()

    async def hand_over(self, question: Ask) -> NoReturn:
        """End the running handler and take `question` as its answer, because another program will ask the person."""
        # Imported here, because not every program that imports the package has an event loop.
        import anyio
        from anyio.lowlevel import checkpoint

        # A handler that has not suspended yet cannot be cancelled.
        await checkpoint()
        self.need_clock().hand_over(question)
        await anyio.sleep_forever()
        raise AssertionError("a handler that was ended goes on")

    # How handlers are called.
    #
    #  1. Handlers run strictly one after another, in the order of the plan.
    #  2. A handler takes its first step without a clock.  Most handlers end in that step, and their deadline costs
    #     nothing.  When one suspends, `drive` arms the clock, which cancels the handler at its deadline.
    #  3. A result is awaited for as long as it is awaitable: an author may return a call without awaiting it.
    #  4. The clock is settled when a handler ends.  If the clock stopped the handler, that is a timeout, a shutdown or a
    #     question handed over (`_take_stop`).  Otherwise an answer is folded into the outcome (`_take_answer`).
    #  5. A handler may raise anything.  Ctrl-C and somebody else's cancellation go on to the emitting code.  Every other
    #     exception is a failure: it is reported, and the row says whether it blocks (`_fail`).
    #  6. After a failure or a stop the next handler gets a new context.  Code that the failed handler left behind, in a
    #     thread for example, cannot touch it.
    #  7. A dispatch ends early when a fold or a failure says so.
    #  8. The duration of each handler that suspended is kept, and that of every 16th call.  To time every call costs 18 %
    #     more with one handler (13.1 instead of 11.1 bare awaits), and 60 % more with ten (5.1 instead of 3.15 each).
    #
    # The method is a generator rather than a coroutine, and it returns nothing: with one handler an event takes 11.1
    # instead of 12.2 bare awaits.  `python -m benchmarks dispatch` measures both figures.
    @types.coroutine
    def call_handlers(self, handlers: Sequence[Handler]) -> Generator[Any, Any, None]:
        """Call `handlers` and combine their answers in `outcome`."""
        context = HookContext(self)
        clock = self.clock
        self.started = perf_counter()
        for handler in handlers:
            self.handler = handler
            stats = handler.stats
            count = stats.count
            stats.count = count + 1
            if clock is not None and clock.closed:
                clock.open()
                clock.overdue = self._report_overdue
            # A local name, because `handler.call(…)` would look for a method first.
            call = handler.call
            try:
                if handler.direct:
                    answer = yield from call(self.event, context)  # type: ignore[misc]  # a coroutine
                else:
                    answer = call(self.event, context)
                    if type(answer) is CoroutineType:
                        answer = yield from answer  # type: ignore[misc]  # a coroutine
                if answer is None and self.clock is None and context.unawaited is None and count & 15:
                    # The common end: no answer, no suspension, no fault.
                    continue
                while answer is not None and inspect.isawaitable(answer):
                    answer = yield from await_any(answer)
                clock = self.clock
                if clock is not None and clock.armed and clock.settle(None):
                    context = HookContext(self)
                    ended = self._take_stop(clock)
                elif context.unawaited:
                    raise HookUsageError(forgotten_await(context.unawaited[0]))
                else:
                    ended = answer is not None and self._take_answer(handler, answer)
            except BaseException as exc:
                # Rule 5: the failure is reported, and the policy of the row decides.
                clock = self.clock
                if clock is not None and clock.gave_up:
                    # `drive` is closing this frame.
                    raise
                context = HookContext(self)
                if clock is not None and clock.settle(exc):
                    ended = self._take_stop(clock)
                elif isinstance(exc, KeyboardInterrupt):
                    raise
                elif clock is not None and (foreign := clock.foreign(exc)) is not None:
                    raise foreign from None
                else:
                    ended = self._fail(describe(exc), exc)
            if clock is not None and clock.armed:
                self._keep_duration(handler)
                clock.armed = False
            elif not count & 15:
                self._keep_duration(handler)
            if ended:
                break

    @types.coroutine
    def finish(self, steps: Generator[Any, Any, None], waiting: Any) -> Generator[Any, Any, None]:
        """Await `steps`, a `call_handlers` that has suspended on `waiting`.

        A handler that swallows every cancellation takes the frame of `steps` with it.  The handlers after it are then
        called in a new frame.
        """
        clock = self.need_clock()
        while True:
            try:
                yield from drive(steps, waiting, clock)
                break
            except DidNotStopError as exc:
                rest = self._give_up(exc, clock)
            steps = self.call_handlers(rest)
            for waiting in steps:  # noqa: B007  # the next `drive` uses it
                break
            else:
                break

    def _keep_duration(self, handler: Handler) -> None:
        now = perf_counter()
        took, self.started = now - self.started, now
        handler.stats.add(took)
        if self.plan.spec.total is not None:
            clock = self.need_clock()
            clock.limit = max(clock.limit - took, 0.001)

    # ---- answers

    def _take_answer(self, handler: Handler, answer: Any) -> bool:
        """Fold an answer into the outcome and return whether the dispatch ends.

        Raises `TypeError` for an answer of a wrong shape, which is a failure of the handler.
        """
        spec = self.plan.spec
        self.plan.owner.answered(handler, self.event, answer)
        if not spec.answers:
            self._report_useless(handler, answer)
            return False
        answers = read_answer(handler.event, spec, answer)
        return any(spec.fold(self, _signed(each, handler, spec)) for each in answers)

    def _report_useless(self, handler: Handler, answer: Any) -> None:
        """Report, once per handler, an answer to an event that takes none."""
        if not handler.mistaken and answer != {}:
            handler.mistaken = True
            self._report(f"returned {shown(answer)}, but {spec_name(self.event)} takes no answer; it is ignored")

    def conflict(self, text: str) -> None:
        """Report that two handlers answered differently."""
        self._report(text)

    # ---- failures

    def _take_stop(self, clock: Clock) -> bool:
        """Take note that the clock stopped the running handler, and return whether the dispatch ends."""
        why, clock.stop = clock.stop, "deadline"
        question, clock.question = clock.question, None
        if why == "asked" and question is not None:
            return self.plan.spec.fold(self, _signed(question, self.handler, self.plan.spec))
        if why == "shutdown":
            # The handler did nothing wrong, so its policy does not count: no gate opens because a session ends.
            return self._fail("was stopped, because the session ends", always_block=True)
        return self._fail(f"timed out after {clock.limit:.3g} s", cause="timed_out")

    def _give_up(self, exc: DidNotStopError, clock: Clock) -> Sequence[Handler]:
        """Disable the hook of a handler that swallowed every cancellation, and return the handlers still to be called."""
        clock.settle(exc)
        owner, hook = self.plan.owner, self.handler.hook
        owner.disable(hook)
        text = f"timed out after {clock.limit:.3g} s and did not stop when cancelled; its hook is disabled"
        why, clock.stop, clock.question = clock.stop, "deadline", None
        ended = self._fail(text, cause="timed_out", always_block=why == "shutdown")
        self._keep_duration(self.handler)
        clock.armed = False
        if ended:
            return ()
        rest = self.plan.handlers[self.plan.handlers.index(self.handler) + 1 :]
        return [disabled(each) if owner.is_disabled(each.hook) else each for each in rest]

    def _report_overdue(self, late: float) -> None:
        """Disable the hook of a handler that goes on `late` seconds after its cancellation; trio cannot give it up."""
        self.plan.owner.disable(self.handler.hook)
        self._report(f"was cancelled {late:.0f} s ago and did not stop; its hook is disabled")

    def _fail(
        self,
        text: str,
        exc: BaseException | None = None,
        *,
        cause: Cause = "failed",
        always_block: bool = False,
    ) -> bool:
        """Report a failure of the running handler, apply its policy, and return whether the dispatch ends.

        `always_block`: the policy does not count; the event is blocked if it can be.
        """
        handler, spec = self.handler, self.plan.spec
        handler.stats.failures += 1
        if spec.settles:
            # No answer is left that a later handler could turn into a permission: the person is asked.
            self._report(text, exc)
            self.outcome = None
            return True
        if policy(handler, spec) == "continue" and not (always_block and spec.can_block):
            self._report(text, exc)
            return False
        self._report(text, exc, "blocked")
        blocks = Block in spec.answers
        self.outcome = Block(text, handler.label, cause) if blocks else Cancel(f"hook {handler.label}: {text}")
        return True

    def _report(self, text: str, exc: BaseException | None = None, outcome: Outcome = "continued") -> None:
        handler = self.handler
        error = hook_error(
            exc,
            hook=handler.hook,
            handler=handler.name,
            event=handler.event,
            outcome=outcome,
            error=text,
            reason=getattr(self.event, "reason", None),
            elapsed=perf_counter() - self.started,
        )
        self.plan.owner.report(error)


async def await_any(awaitable: Awaitable[Any]) -> Any:
    """Await any awaitable; a generator can `yield from` a coroutine only."""
    return await awaitable


# The innermost dispatch of this task.  It is set and never reset, which is cheaper: one that is over is not `live`.
running: ContextVar[Dispatch | None] = ContextVar("agent_hooks dispatch", default=None)
# Bound once: `running.get()` of another module binds the method at each call, 12.1 instead of 11.1 bare awaits an event.
get_running, set_running = running.get, running.set


def current_dispatch(owner: Owner | None = None) -> Dispatch | None:
    """Return the innermost dispatch that this code runs in, as its handler, or as a task or thread of its handler.

    `owner`: only a dispatch of this runner counts.
    """
    dispatch = running.get()
    while dispatch is not None and not (dispatch.live and owner in (None, dispatch.owner)):
        dispatch = dispatch.parent
    return dispatch


def disabled(handler: Handler) -> Handler:
    """Return a stand-in for a handler of a disabled hook; it fails at every call."""

    def refuse(event: object, ctx: object) -> None:
        raise HookUsageError("its hook is disabled, because a handler of it did not stop when cancelled")

    return handler.replaced_by(refuse)


def policy(handler: Handler, spec: EventSpec) -> OnError:
    """Return whether a failure of the handler blocks or lets the event go on."""
    if not spec.can_block:
        return "continue"
    return handler.on_error or spec.on_error


def _signed(answer: Answer, handler: Handler, spec: EventSpec) -> Answer:
    """Return the answer with the fields that only the runner sets: the handler's hook, and the cause of a block."""
    match answer:
        case Block():
            return Block(answer.reason, handler.label, spec.cause, answer.rule, answer.remedy)
        case Ask():
            return Ask(answer.title, answer.message, handler.label, rule=answer.rule, remedy=answer.remedy)
        case Continue():
            # The source of the message, which is a path.
            return Continue(answer.text, handler.hook)
        case Rewrite() | Changed():
            return replace(answer, by=(handler.label,))
        case _:
            return answer
