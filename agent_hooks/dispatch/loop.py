"""One event on its way through its handlers: the only code that calls handlers.

Theory of operation.  The runner takes the first step of `call_handlers` by hand: when no handler suspends, the event is
over without a task, a scope or a timer.  Otherwise `deadlines.drive` awaits it under the dispatch's clock.  A handler
that will not stop takes the generator's frame with it; the dispatch's state lives outside of that, and a new generator
goes on with the next handler.
Above: runner.  Below: api, context, deadlines, dispatch_table.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Generator, Sequence
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
from agent_hooks.errors import HookError, HookUsageError, Outcome, describe, place_of, shown, traceback_text
from agent_hooks.values.answers import Answer, Ask, Block, Cancel, Continue, Rewrite
from agent_hooks.values.events import Event


class Plan(Struct, frozen=True, eq=False):
    """What one dispatch needs to know; made once per event type, reason and tool.  `limit` in seconds."""

    owner: Owner
    spec: EventSpec
    handlers: tuple[Handler, ...]
    limit: float
    tool_name: str | None
    lane: Lane | None


class Owner(Surroundings, Protocol):
    """The runner, as a dispatch sees it."""

    def make_clock(self, limit: float, parent: Clock | None) -> Clock:
        """Return a clock of the running backend, nested in `parent`."""
        ...

    def disable(self, hook_path: str) -> None:
        """Call no handler of a hook any more: its gates block, the others are left out."""

    def is_disabled(self, hook_path: str) -> bool:
        """Tell whether that has happened."""
        ...

    def answered(self, handler: Handler, event: Event[Any], answer: Any) -> None:
        """Hear of a value that a handler returned."""

    def report(self, error: HookError) -> None:
        """Hear of a failure."""


class Dispatch:
    """One event on its way through its handlers; outlives the generator that calls them.

    One is made for every event, so it has slots and no `__init__`: `HookRunner.emit` fills it in, puts it into `running`
    and calls `call_handlers`; at the end it sets `live` to `False` and closes the clock, if there is one.
    """

    __slots__ = ("clock", "event", "handler", "live", "outcome", "parent", "plan", "started")

    plan: Plan
    event: Any
    parent: Dispatch | None  # the one this is nested in
    live: bool
    outcome: Any
    clock: Clock | None  # made when somebody needs one
    started: float  # when it began, or, for one whose time nobody takes, when the first one did
    handler: Handler  # the running one

    @property
    def owner(self) -> Owner:
        """The runner."""
        return self.plan.owner

    @property
    def tool_name(self) -> str | None:
        """The tool that the event is about, if there is one."""
        return self.plan.tool_name

    def need_clock(self) -> Clock:
        """Return the dispatch's clock, made now if there was none."""
        clock = self.clock
        if clock is None:
            parent = None if self.parent is None else self.parent.need_clock()
            clock = self.clock = self.plan.owner.make_clock(self.plan.limit, parent)
            clock.dispatch = self
        return clock

    async def hand_over(self, question: Ask) -> NoReturn:
        """End the running handler where it stands: what it asks is its answer, and somebody else puts the question."""
        import anyio  # here, for it is not loaded by all who import the package
        from anyio.lowlevel import checkpoint

        await checkpoint()  # what has not suspended cannot be cancelled
        self.need_clock().hand_over(question)
        await anyio.sleep_forever()
        raise AssertionError("a handler that was ended goes on")

    @types.coroutine  # so that it may `yield from` what an `async def` returns
    def call_handlers(self, handlers: Sequence[Handler]) -> Generator[Any, Any, None]:
        """Call `handlers`, strictly one after another.

        A generator, whose first step costs less than that of a coroutine; it returns nothing, for the same reason.
        """
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
                clock.overdue = self._overdue
            call = handler.call  # called by itself: as a method it would be looked up as one
            try:
                if handler.direct:
                    answer = yield from call(self.event, context)  # type: ignore[misc]  # as said above
                else:
                    answer = call(self.event, context)
                    if type(answer) is CoroutineType:
                        answer = yield from answer  # type: ignore[misc]  # as said above
                if answer is None and self.clock is None and context.unawaited is None and count & 15:
                    continue  # as most do
                while answer is not None and inspect.isawaitable(answer):
                    answer = yield from _result_of(answer)  # the author returned a call without awaiting it
                clock = self.clock  # a handler that suspended has one
                if clock is not None and clock.armed and clock.settle(None):
                    context = HookContext(self)
                    ended = self._stopped(clock)
                elif context.unawaited:
                    raise HookUsageError(forgotten_await(context.unawaited[0]))
                else:
                    ended = answer is not None and self._take(handler, answer)
            except BaseException as exc:  # a handler may raise anything; the row says what that means
                clock = self.clock
                if clock is not None and clock.gave_up:
                    raise  # `drive` is closing this frame
                # what it still does, in a thread for example, or forgot to await, is nothing of the next handler's
                context = HookContext(self)
                if clock is not None and clock.settle(exc):
                    ended = self._stopped(clock)
                elif isinstance(exc, KeyboardInterrupt):
                    raise
                elif clock is not None and (foreign := clock.foreign(exc)) is not None:
                    raise foreign from None
                else:
                    ended = self._fail(exc, describe(exc))
            if clock is not None and clock.armed:
                self._note_duration(handler)
                clock.armed = False
            elif not count & 15:
                self._note_duration(handler)
            if ended:
                break

    @types.coroutine
    def go_on(self, steps: Generator[Any, Any, None], waiting: Any) -> Generator[Any, Any, None]:
        """Await `steps`, a `call_handlers` that has suspended on `waiting`, and whatever has to follow it."""
        clock = self.need_clock()
        while True:
            try:
                yield from drive(steps, waiting, clock)
                break
            except DidNotStopError as exc:
                rest = self._leave_behind(exc, clock)
            steps = self.call_handlers(rest)
            for waiting in steps:  # noqa: B007  # used by the next `drive`
                break
            else:
                break

    def _note_duration(self, handler: Handler) -> None:
        now = perf_counter()
        took, self.started = now - self.started, now
        handler.stats.add(took)
        if self.plan.spec.total is not None:
            clock = self.need_clock()
            clock.limit = max(clock.limit - took, 0.001)

    # ---- answers

    def _take(self, handler: Handler, answer: Any) -> bool:
        """Fold an answer in; return whether the dispatch ends.  A wrong shape raises, and is a failure."""
        spec = self.plan.spec
        self.plan.owner.answered(handler, self.event, answer)
        if not spec.answers:
            self._mistake(handler, answer)
            return False
        answers = read_answer(handler.event, spec, answer)
        return any(spec.fold(self, _signed(each, handler, spec)) for each in answers)

    def _mistake(self, handler: Handler, answer: Any) -> None:
        """Report, once per handler, an answer to an event that takes none."""
        if not handler.mistaken and answer != {}:
            handler.mistaken = True
            self._report(None, f"returned {shown(answer)}, but {spec_name(self.event)} takes no answer; it is ignored")

    def conflict(self, text: str) -> None:
        """Report that two handlers answered differently."""
        self._report(None, text)

    # ---- failures

    def _stopped(self, clock: Clock) -> bool:
        """The running handler was cancelled by its clock."""
        why, clock.stop = clock.stop, "deadline"
        question, clock.question = clock.question, None
        if why == "asked" and question is not None:
            return self.plan.spec.fold(self, _signed(question, self.handler, self.plan.spec))
        if why == "shutdown":
            return self._fail(None, "was stopped, because the session ends", closed=True)
        return self._fail(None, f"timed out after {clock.limit:.3g} s", timed_out=True)

    def _leave_behind(self, exc: DidNotStopError, clock: Clock) -> Sequence[Handler]:
        """The running handler swallowed every cancellation: disable its hook; return who is still to be called."""
        clock.settle(exc)
        text = f"timed out after {clock.limit:.3g} s and did not stop when cancelled; its hook is disabled"
        hook = self.handler.hook
        self.plan.owner.disable(hook)
        ended = self._fail(None, text, timed_out=True)
        self._note_duration(self.handler)
        clock.armed = False
        if ended:
            return ()
        # later events do without that hook, and so does the rest of this one
        rest = self.plan.handlers[self.plan.handlers.index(self.handler) + 1 :]
        return [disabled(each) if self.plan.owner.is_disabled(each.hook) else each for each in rest]

    def _overdue(self, late: float) -> None:
        self.plan.owner.disable(self.handler.hook)
        self._report(None, f"was cancelled {late:.0f} s ago and did not stop; its hook is disabled")

    def _fail(self, exc: BaseException | None, text: str, *, timed_out: bool = False, closed: bool = False) -> bool:
        """Report a failure of the running handler and apply its policy; return whether the dispatch ends.

        `closed`: block whatever the policy, where something can be blocked: the handler did nothing wrong.
        """
        handler = self.handler
        handler.stats.failures += 1
        if policy(handler, self.plan.spec) == "continue" and not (closed and self.plan.spec.can_block):
            self._report(exc, text)
            return False
        self._report(exc, text, "blocked")
        if Block in self.plan.spec.answers:
            self.outcome = Block(text, handler.label, "timed_out" if timed_out else "failed")
        else:
            self.outcome = Cancel(f"hook {handler.label}: {text}")
        return True

    def _report(self, exc: BaseException | None, text: str, outcome: Outcome = "continued") -> None:
        handler = self.handler
        file, line = place_of(exc)
        error = HookError(
            hook_path=handler.hook,
            handler=handler.name,
            event=handler.event,
            reason=getattr(self.event, "reason", None),
            error=text,
            exception=exc,
            traceback="" if exc is None else traceback_text(exc),
            file=file,
            line=line,
            elapsed=perf_counter() - self.started,
            outcome=outcome,
        )
        self.plan.owner.report(error)


async def _result_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable  # which a generator has no word for


# Set and never reset, which is cheaper: a dispatch that is over does not count.
running: ContextVar[Dispatch | None] = ContextVar("agent_hooks dispatch", default=None)
# Bound once: a method of an imported name is bound anew at each call.
get_running, set_running = running.get, running.set


def current_dispatch(owner: Owner | None = None) -> Dispatch | None:
    """Return the innermost dispatch (of `owner`, if given) that this code runs in: its handler, task or thread."""
    dispatch = running.get()
    while dispatch is not None and not (dispatch.live and owner in (None, dispatch.owner)):
        dispatch = dispatch.parent
    return dispatch


def disabled(handler: Handler) -> Handler:
    """Return a handler that fails in the place of one whose hook is disabled."""

    def refuse(event: object, ctx: object) -> None:
        raise HookUsageError("its hook is disabled, because a handler of it did not stop when cancelled")

    return handler.replaced_by(refuse)


def policy(handler: Handler, spec: EventSpec) -> OnError:
    """Return what happens when the handler fails."""
    if not spec.can_block:
        return "continue"
    return handler.on_error or spec.on_error


def _signed(answer: Answer, handler: Handler, spec: EventSpec) -> Answer:
    """Return the answer with what only the runner may set: who answered."""
    if isinstance(answer, Block):
        return Block(answer.reason, handler.label, spec.cause)
    if isinstance(answer, Ask):
        return Ask(answer.title, answer.message, handler.label)
    if isinstance(answer, Continue):
        return Continue(answer.text, handler.hook)  # the source of a message, which is a path
    return replace(answer, by=handler.label) if isinstance(answer, Rewrite | Changed) else answer
