"""One event on its way through its handlers: the only code that calls handlers.

Theory of operation.  The runner takes the first step of `call_handlers` by hand: when no handler suspends, the event is
over without a task, a scope or a timer.  Otherwise `deadlines.drive` awaits it under the dispatch's clock.  A handler
that will not stop takes the coroutine's frame with it; the dispatch's state lives outside of that, and a new coroutine
goes on with the next handler.
Above: runner.  Below: api, context, deadlines, dispatch_table.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from operator import length_hint
from time import perf_counter
from types import CoroutineType
from typing import Any, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.answers import Answer, Ask, Block, Cancel, Continue, Rewrite
from agent_hooks.context import HookContext, Surroundings, forgotten_await
from agent_hooks.deadlines import Clock, DidNotStopError, drive
from agent_hooks.dispatch_table import EventSpec, OnError, read_answer, spec_name
from agent_hooks.errors import HookError, HookUsageError, Outcome, describe, place_of, shown, traceback_text
from agent_hooks.events import Event
from agent_hooks.handlers import Handler
from agent_hooks.lanes import Lane
from agent_hooks.points import Changed
from agent_hooks.threads import ThreadCall


class Plan(Struct, frozen=True, eq=False):
    """What one dispatch needs to know; made once per event type, reason and tool.  `limit` in seconds."""

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

    def answered(self, handler: Handler, event: Event[Any], answer: Any) -> None:
        """Hear of a value that a handler returned."""

    def report(self, error: HookError) -> None:
        """Hear of a failure."""


class Dispatch(Struct, eq=False):
    """One event on its way through its handlers; outlives the coroutine that calls them.

    A struct, because one is made for every event, and without a clock until somebody needs one.  `parent` is the dispatch
    this one is nested in; `handlers` are those that are left to call.  Whoever makes one puts it into `running` and calls
    `call_handlers`; at the end they set `live` to `False` and close the clock, if there is one.
    """

    owner: Owner
    plan: Plan
    event: Any
    parent: Dispatch | None
    handlers: Sequence[Handler]
    outcome: Any = None
    clock: Clock | None = None
    left: Any = None  # an iterator of the handlers that are still to be called
    started: float = 0.0  # when it began, or, for one whose time nobody takes, when the first one did
    live: bool = True
    question: Ask | None = None  # of a handler that was ended by `hand_over`

    @property
    def handler(self) -> Handler:
        """The running handler; found by what is left, because a note of each would cost more than all the rest here."""
        return self.handlers[-1 - length_hint(self.left)]

    def need_clock(self) -> Clock:
        """Return the dispatch's clock, made now if there was none."""
        if self.clock is None:
            parent = None if self.parent is None else self.parent.need_clock()
            self.clock = self.owner.make_clock(self.plan.limit, parent)
            self.clock.dispatch = self
        return self.clock

    async def hand_over(self, question: Ask) -> NoReturn:
        """End the running handler where it stands: what it asks is its answer, and somebody else puts the question."""
        import anyio  # here, for it is not loaded by all who import the package
        from anyio.lowlevel import checkpoint

        await checkpoint()  # what has not suspended cannot be cancelled
        if self.question is None:
            self.question = question
            self.need_clock().hand_over()
        await anyio.sleep_forever()
        raise AssertionError("a handler that was ended goes on")

    async def call_handlers(self) -> None:
        """Call the handlers that are left, strictly one after another."""
        context = HookContext(self.owner, self, self.plan.tool_name)
        self.started = perf_counter()
        self.left = left = iter(self.handlers)
        for handler in left:
            stats = handler.stats
            stats.count = count = stats.count + 1
            clock = self.clock
            if clock is not None and clock.closed:
                clock.open()
                clock.overdue = self._overdue
            try:
                if handler.threaded:
                    answer = await self._call_in_thread(handler, context)
                else:
                    answer = handler.function(self.event, context)
                if type(answer) is CoroutineType:
                    answer = await answer
                while answer is not None and inspect.isawaitable(answer):
                    answer = await answer  # the author returned a call without awaiting it
                clock = self.clock  # a handler that suspended has one
                if clock is None and answer is None and context.unawaited is None and count & 15 != 1:
                    continue  # as most do
                if clock is not None and clock.armed and clock.settle(None):
                    context = HookContext(self.owner, self, self.plan.tool_name)
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
                context = HookContext(self.owner, self, self.plan.tool_name)
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
            elif count & 15 == 1:
                self._note_duration(handler)
            if ended:
                break

    async def go_on(self, coro: Coroutine[Any, Any, None], waiting: Any) -> None:
        """Await `coro`, a `call_handlers` that has suspended on `waiting`, and whatever has to follow it."""
        clock = self.need_clock()
        while True:
            try:
                await drive(coro, waiting, clock)
                break
            except DidNotStopError as exc:
                if self._leave_behind(exc, clock):
                    break
            coro = self.call_handlers()
            try:
                waiting = coro.send(None)
            except StopIteration:
                break

    async def _call_in_thread(self, handler: Handler, context: HookContext) -> Any:
        if handler.abandoned is not None and handler.abandoned.running:
            raise HookUsageError("is still running from an earlier event, and is not called again until it ends")
        call = ThreadCall(handler.function, self.event, context)
        try:
            return await call.result()
        finally:
            if call.running:
                handler.abandoned = call

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
        self.owner.answered(handler, self.event, answer)
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
        question, self.question = self.question, None
        if why == "asked" and question is not None:
            return self.plan.spec.fold(self, _signed(question, self.handler, self.plan.spec))
        if why == "shutdown":
            return self._fail(None, "was stopped, because the session ends", closed=True)
        return self._fail(None, f"timed out after {clock.limit:.3g} s", timed_out=True)

    def _leave_behind(self, exc: DidNotStopError, clock: Clock) -> bool:
        """The running handler swallowed every cancellation: disable its hook; return whether the dispatch ends."""
        clock.settle(exc)
        text = f"timed out after {clock.limit:.3g} s and did not stop when cancelled; its hook is disabled"
        hook = self.handler.hook
        self.owner.disable(hook)
        ended = self._fail(None, text, timed_out=True)
        self._note_duration(self.handler)
        clock.armed = False
        # later events do without that hook, and so does the rest of this one
        self.handlers = [each if each.hook != hook else disabled(each) for each in self.left]
        return ended

    def _overdue(self, late: float) -> None:
        self.owner.disable(self.handler.hook)
        self._report(None, f"was cancelled {late:.0f} s ago and did not stop; its hook is disabled")

    def _fail(self, exc: BaseException | None, text: str, *, timed_out: bool = False, closed: bool = False) -> bool:
        """Report a failure of the running handler and apply its policy; return whether the dispatch ends.

        `closed`: block whatever the policy, where something can be blocked: the handler did nothing wrong.
        """
        handler: Handler = self.handler
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
        handler: Handler = self.handler
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
        self.owner.report(error)


# Set and never reset, which is cheaper: a dispatch that is over does not count.
running: ContextVar[Dispatch | None] = ContextVar("agent_hooks dispatch", default=None)


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
