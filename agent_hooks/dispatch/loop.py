"""The one loop: the only code that calls handlers.

A `Plan` (`dispatch.plan`) says which handlers an event has and which row of the table applies to it.  A `Dispatch` is one
event on its way through that plan.  The runner makes both; see `Engine.emit`.
"""

from __future__ import annotations

import os
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import ContextVar
from time import perf_counter
from types import CoroutineType
from typing import Any, NoReturn

from msgspec.structs import replace

from agent_hooks.concurrency.deadlines import (
    Clock,
    DidNotStopError,
    ForkedClock,
    LeftOpenError,
    drive,
)
from agent_hooks.concurrency.foreign import is_awaitable
from agent_hooks.concurrency.forks import end_child
from agent_hooks.dispatch.context import HookContext, Surroundings, forgotten_await
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.mistakes import failure_text
from agent_hooks.dispatch.plan import Owner, Plan
from agent_hooks.dispatch.points import Changed
from agent_hooks.dispatch.reading import misplaced, read_answer
from agent_hooks.dispatch.table import EventSpec, OnError, spec_name
from agent_hooks.errors import HookUsageError, Outcome, describe, honest, hook_error, place_of, shown
from agent_hooks.ui.base import Asker, call_text
from agent_hooks.values.answers import AddContext, Answer, Ask, Block, Cancel, Cause, Continue, Replace, Rewrite, Stop


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

    def __str__(self) -> str:  # pragma: no cover  # called in forked children
        """Return the hook, the handler and the event, for a message."""
        return f"hook {self.handler.label}: {self.handler.name} on {spec_name(self.event)}"

    @property
    def owner(self) -> Owner:
        """The runner."""
        return self.plan.owner

    @property
    def tool_name(self) -> str | None:
        """The tool that the event is about, `None` for other events."""
        return self.plan.tool_name

    @property
    def asker(self) -> Asker:
        """The hook of the running handler, and the whole call that the event is about."""
        given = getattr(self.event, "input", None)
        tool = self.tool_name
        return Asker(self.handler.label, call_text(tool, given) if tool and isinstance(given, Mapping) else "")

    @property
    def ended(self) -> bool:
        """Whether the hooks of the plan were loaded again."""
        return self.plan.validity.ended

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
    #  8. The duration of each handler that suspended is kept, and that of its first calls and every 32nd (`Stats`).  To
    #     time every call costs 18 % more with one handler, and 60 % more with ten.
    #  9. A handler that ends inside of a cancel scope or task group has failed.  Its scopes are left, so that a later
    #     cancellation of them does not reach the emitting code.  trio knows the innermost scope for nothing, so each call
    #     is compared.  On asyncio the question for the task costs as much as an event.  There a dispatch is watched from
    #     the first handler on that has suspended or left a scope open at an earlier call, and any other handler at the
    #     calls 1, 2, 4, 8 and so on up to 1024, and every 1024th.
    # 10. A child process that a handler has forked ends when it comes back: the fork has replaced the clock.
    #
    # The method is a generator rather than a coroutine, and it returns nothing: with one handler an event takes 11.1
    # instead of 12.2 bare awaits.  `python -m benchmarks dispatch` measures both figures.
    @types.coroutine
    def call_handlers(self, handlers: Sequence[Handler]) -> Generator[Any, Any, None]:
        """Call `handlers` and combine their answers in `outcome`."""
        context = HookContext(self)
        event = self.event
        clock = self.clock
        if clock is not None and clock.closed:
            clock.open()
        self.started = perf_counter()
        for handler in handlers:
            self.handler = handler
            stats = handler.stats
            left = stats.left - 1
            stats.left = left
            # Rules 8 and 9.
            if not left and stats.begin_measured() and (clock is None or not clock.watching):
                clock = self.need_clock()
                clock.watch_scopes()
            # A local name, because `handler.call(…)` would look for a method first.
            call = handler.call
            try:
                if handler.direct:
                    answer = yield from call(event, context)  # type: ignore[misc]  # a coroutine
                else:
                    answer = call(event, context)
                    if type(answer) is CoroutineType:
                        answer = yield from answer  # type: ignore[misc]  # a coroutine
                clock = self.clock
                if (
                    answer is None
                    and left
                    and context.unawaited is None
                    and (clock is None or not (clock.armed or clock.left_open()))
                ):
                    # The common end: no answer, no suspension, no fault.
                    continue
                awaited = 0
                while answer is not None and is_awaitable(answer, awaited):
                    awaited += 1
                    answer = yield from await_any(answer)
                    clock = self.clock
                if clock is not None and clock.left_open():
                    raise LeftOpenError
                if clock is not None and clock.armed and clock.settle(None):
                    context = HookContext(self)
                    ended = self._take_stop(clock)
                elif context.unawaited:
                    raise HookUsageError(forgotten_await(context.unawaited[0]))
                else:
                    ended = answer is not None and self._take_answer(handler, answer)
            except BaseException as exc:
                # Rule 5: the failure is reported, and the policy of the row decides.
                exc = honest(exc)
                clock = self.clock
                if clock is not None and clock.forked:  # pragma: no cover  # a forked child leaves no measurement
                    end_child(str(self), exc)
                if clock is not None and clock.gave_up:
                    # `drive` is closing this frame.
                    raise
                context = HookContext(self)
                if clock is not None and clock.left_open():
                    # Rule 9.
                    yield from await_any(clock.leave_scopes())
                    ended = self._take_left_open(clock, exc)
                elif clock is not None and clock.settle(exc):
                    ended = self._take_stop(clock)
                elif isinstance(exc, KeyboardInterrupt):
                    raise
                elif clock is not None and (foreign := clock.foreign(exc)) is not None:
                    raise foreign from None
                else:
                    ended = self._fail(failure_text(exc, self.event, self.handler.hook), exc)
            if clock is not None and clock.armed:
                self._keep_duration(handler)
                if stats.left != 1:
                    # It will suspend again.
                    stats.measure_all()
                clock.armed = False
            elif not left:
                self._keep_duration(handler)
            if ended:
                break
            event = self.event
            if clock is not None and clock.closed:
                clock.open()

    @types.coroutine
    def finish(self, steps: Generator[Any, Any, None], waiting: Any) -> Generator[Any, Any, None]:
        """Await `steps`, a `call_handlers` that has suspended on `waiting`.

        A handler that swallows every cancellation takes the frame of `steps` with it.  The handlers after it are then
        called in a new frame.
        """
        clock = self.need_clock()
        if clock.forked:  # pragma: no cover  # a forked child leaves no measurement
            end_child(str(self))
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
        counts = self.plan.owner.counts
        return any(spec.fold(self, self._signed(each, handler)) for each in answers if counts(handler.hook, each))

    def _signed(self, answer: Answer, handler: Handler) -> Answer:
        """Return the answer with the fields that only the runner sets: the handler's hook, and the cause of a block.

        The texts that the model reads have no secrets.
        """
        hide, spec = self.plan.owner.hide, self.plan.spec
        match answer:
            case Block():
                # A hook's own kind of block may have other fields.
                kind = Stop if isinstance(answer, Stop) else Block
                return kind(hide(answer.reason), handler.label, spec.cause, answer.rule, hide(answer.remedy))
            case Ask():
                # Only a guard knows the words of a program.
                return replace(answer, by=handler.label, hook=handler.hook, also=(), rewrite=None, words=())
            case Cancel():
                return Cancel(answer.reason and hide(answer.reason))
            case Continue():
                # The source of the message, which is a path.
                return Continue(hide(answer.text), handler.hook)
            case AddContext():
                return AddContext(hide(answer.text), handler.hook)
            case Replace():
                return replace(answer, context=(), stop=None)
            case Rewrite() | Changed():
                return replace(answer, by=(handler.label,))
            case _:
                return answer

    def _report_useless(self, handler: Handler, answer: Any) -> None:
        """Report, once per handler, an answer to an event that takes none."""
        if not handler.mistaken and not (type(answer) is dict and not answer):
            handler.mistaken = True
            name, hint = spec_name(self.event), misplaced(self.plan.spec, answer)
            self._report(f"returned {shown(answer)}, but {name} takes no answer; it is ignored{hint}")

    def conflict(self, text: str) -> None:
        """Report that two handlers answered differently."""
        self._report(text)

    # ---- failures

    def _take_stop(self, clock: Clock) -> bool:
        """Take note that the clock stopped the running handler, and return whether the dispatch ends."""
        why, clock.stop = clock.stop, "deadline"
        question, clock.question = clock.question, None
        if why == "asked" and question is not None:
            return self.plan.spec.fold(self, self._signed(question, self.handler))
        if why == "shutdown":
            # The handler did nothing wrong, so its policy does not count: no gate opens because a session ends.
            return self._fail("was stopped, because the session ends", always_block=True)
        self.handler.timed_out()
        return self._fail(f"timed out after {clock.limit:.3g} s", cause="timed_out")

    def _take_left_open(self, clock: Clock, exc: BaseException) -> bool:
        """Take note that the running handler left scopes open, which are left now; return whether the dispatch ends.

        Raises somebody else's cancellation that the handler ended with, or swallowed.
        """
        self.handler.stats.measure_all()
        clock.settle(exc)
        if (foreign := clock.foreign(exc)) is not None:
            raise foreign from None
        why, clock.stop, clock.question = clock.stop, "deadline", None
        failure = exc if isinstance(exc, LeftOpenError) else LeftOpenError()
        return self._fail(describe(failure), exc, always_block=why == "shutdown")

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

    def report_overdue(self, late: float) -> None:
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
        text = self.plan.owner.hide(text)
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
        place = place_of(exc)
        error = hook_error(
            exc,
            hook=handler.hook,
            handler=handler.name,
            event=handler.event,
            outcome=outcome,
            error=text,
            reason=getattr(self.event, "reason", None),
            elapsed=perf_counter() - self.started,
            # No line of the hook has raised a wrong answer, or a deadline; the handler's own says where to look.
            place=handler.place if place[1] is None else place,
        )
        self.plan.owner.report(error)


async def await_any(awaitable: Awaitable[Any]) -> Any:
    """Await any awaitable; a generator can `yield from` a coroutine only."""
    return await awaitable


# The innermost dispatch of this task.  It is set and never reset, which is cheaper: one that is over is not `live`.
running: ContextVar[Dispatch | None] = ContextVar("agent_hooks dispatch", default=None)
# Bound once: `running.get()` of another module binds the method at each call, 12.1 instead of 11.1 bare awaits an event.
get_running, set_running = running.get, running.set


def _mark_fork() -> None:  # pragma: no cover  # a forked child leaves no measurement
    """Mark the dispatch whose handler has forked, in the child; so a handler that never forks pays nothing."""
    dispatch = current_dispatch()
    if dispatch is not None:
        dispatch.clock = ForkedClock(dispatch.plan.limit, set())
        dispatch.clock.dispatch = dispatch


os.register_at_fork(after_in_child=_mark_fork)


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
