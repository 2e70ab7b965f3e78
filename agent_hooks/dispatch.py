"""One event on its way through its handlers: the only code that calls handlers.

Theory of operation.  `Dispatch.run` takes the first step of `_call_handlers` by hand: when no handler suspends, the event
is over without a task, a scope or a timer.  Otherwise `deadlines.drive` awaits it under the dispatch's clock.  A handler
that will not stop takes the coroutine's frame with it; the dispatch's state lives outside of that, and a new coroutine
goes on with the next handler.
Above: runner.  Below: api, context, deadlines, dispatch_table.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextvars import ContextVar
from time import perf_counter
from types import CoroutineType
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from agent_hooks.answers import Answer, Ask, Block, Cancel, Rewrite
from agent_hooks.api import Handler
from agent_hooks.context import HookContext, Surroundings, forgotten_await
from agent_hooks.deadlines import Clock, DidNotStopError, drive
from agent_hooks.dispatch_table import EventSpec, OnError, read_answer, spec_name
from agent_hooks.errors import HookError, HookUsageError, Outcome, describe, line_of, shown, traceback_text
from agent_hooks.events import Event
from agent_hooks.threads import ThreadCall


class Plan(NamedTuple):
    """What one dispatch needs to know; made once per event type, reason and tool.  `limit` in seconds."""

    spec: EventSpec
    handlers: tuple[Handler, ...]
    limit: float
    tool_name: str | None


class Owner(Surroundings, Protocol):
    """The runner, as a dispatch sees it."""

    def make_clock(self, limit: float, parent: Clock | None) -> Clock:
        """Return a clock of the running backend."""
        ...

    def is_timed(self) -> bool:
        """Tell whether the durations of the next dispatch are kept."""
        ...

    def is_disabled(self, hook_path: str) -> bool:
        """Tell whether a handler of that hook would not stop."""
        ...

    def disable(self, hook_path: str) -> None:
        """Call no handler of a hook any more: its gates block, the others are left out."""

    def answered(self, handler: Handler, event: Event[Any], answer: Any) -> None:
        """Hear of a value that a handler returned."""

    def report(self, error: HookError) -> None:
        """Hear of a failure."""


class Dispatch:
    """One event on its way through its handlers; outlives the coroutine that calls them."""

    __slots__ = (
        "_context",
        "_handler",
        "_handlers",
        "_live",
        "_over",
        "_spec",
        "_started",
        "_timed",
        "_unawaited",
        "clock",
        "event",
        "outcome",
        "owner",
        "parent",
    )

    def __init__(self, owner: Owner, plan: Plan, event: Event[Any]) -> None:
        self.owner = owner
        self.event: Any = event
        self.outcome: Any = None
        self.parent: Dispatch | None = current_dispatch()
        self.clock: Clock = owner.make_clock(plan.limit, None if self.parent is None else self.parent.clock)
        self._spec = plan.spec
        self._unawaited: list[str] = []
        self._context = HookContext(owner, self.clock, self._unawaited, plan.tool_name)
        self._handlers: Iterator[Handler] = iter(plan.handlers)
        self._handler: Handler
        self._started = 0.0
        self._timed = owner.is_timed()
        self._live = True
        self._over = False

    async def run(self) -> Any:
        """Call every handler and return what their answers combine to, or `None`."""
        _current.set(self)
        try:
            while not self._over:
                coro = self._call_handlers()
                try:
                    waiting = coro.send(None)
                except StopIteration:
                    break
                try:
                    await drive(coro, waiting, self.clock)
                except DidNotStopError as exc:
                    self._leave_behind(exc)
        finally:
            self._live = False
            self.clock.close()
        return self.outcome

    async def _call_handlers(self) -> None:
        """Call the handlers that are left, strictly one after another."""
        clock = self.clock
        self._started = perf_counter()
        for handler in self._handlers:
            self._handler = handler
            handler.stats.count += 1
            clock.armed = False
            if clock.closed:
                clock.open()
                clock.overdue = self._overdue
            try:
                if handler.threaded:
                    answer = await self._call_in_thread(handler)
                else:
                    answer = self._function(handler)(self.event, self._context)
                while answer is not None and (type(answer) is CoroutineType or inspect.isawaitable(answer)):
                    answer = await answer  # again for an author who returned a call without awaiting it
                if clock.armed and clock.settle(None):
                    ended = self._stopped()
                elif self._unawaited:
                    raise HookUsageError(forgotten_await(self._unawaited[0]))
                else:
                    ended = answer is not None and self._take(handler, answer)
            except BaseException as exc:  # a handler may raise anything; the row says what that means
                if clock.gave_up:
                    raise  # `drive` is closing this frame
                if clock.settle(exc):
                    ended = self._stopped()
                elif isinstance(exc, KeyboardInterrupt):
                    raise
                elif (foreign := clock.foreign(exc)) is not None:
                    raise foreign from None
                else:
                    ended = self._fail(exc, describe(exc))
            if self._timed or clock.armed:
                self._note_duration(handler)
            if ended:
                break
            if self._unawaited:
                self._unawaited.clear()
        self._over = True

    def _function(self, handler: Handler) -> Any:
        if self.owner.is_disabled(handler.hook):
            raise HookUsageError("its hook is disabled, because a handler of it did not stop when cancelled")
        return handler.function

    async def _call_in_thread(self, handler: Handler) -> Any:
        if handler.abandoned is not None and handler.abandoned.running:
            raise HookUsageError("is still running from an earlier event, and is not called again until it ends")
        call = ThreadCall(self._function(handler), self.event, self._context)
        try:
            return await call.result()
        finally:
            if call.running:
                handler.abandoned = call

    def _note_duration(self, handler: Handler) -> None:
        now = perf_counter()
        took, self._started = now - self._started, now
        handler.stats.add(took)
        if self._spec.total is not None:
            self.clock.limit = max(self.clock.limit - took, 0.001)

    # ---- answers

    def _take(self, handler: Handler, answer: Any) -> bool:
        """Fold an answer in; return whether the dispatch ends.  A wrong shape raises, and is a failure."""
        self.owner.answered(handler, self.event, answer)
        if not self._spec.answers:
            self._mistake(handler, answer)
            return False
        answers = read_answer(handler.event, self._spec, answer)
        return any(self._spec.fold(self, _signed(each, handler.label)) for each in answers)

    def _mistake(self, handler: Handler, answer: Any) -> None:
        """Report, once per handler, an answer to an event that takes none."""
        if not handler.mistaken and answer != {}:
            handler.mistaken = True
            self._report(None, f"returned {shown(answer)}, but {spec_name(self.event)} takes no answer; it is ignored")

    def conflict(self, text: str) -> None:
        """Report that two handlers answered differently."""
        self._report(None, text)

    # ---- failures

    def _stopped(self) -> bool:
        """The running handler was cancelled by its clock."""
        self._renew_context()
        why, self.clock.stop = self.clock.stop, "deadline"
        if why == "shutdown":
            return self._fail(None, "was stopped, because the session ends")
        return self._fail(None, f"timed out after {self.clock.limit:.3g} s", timed_out=True)

    def _leave_behind(self, exc: DidNotStopError) -> None:
        """The running handler swallowed every cancellation; go on without it, and disable its hook."""
        self.clock.settle(exc)
        self.owner.disable(self._handler.hook)
        text = f"timed out after {self.clock.limit:g} s and did not stop when cancelled; its hook is disabled"
        self._over = self._fail(None, text, timed_out=True)
        self._note_duration(self._handler)
        self._renew_context()

    def _renew_context(self) -> None:
        """What a stopped handler still does, in a thread for example, must not be held against the next one."""
        self._unawaited = []
        self._context = HookContext(self.owner, self.clock, self._unawaited, self._context.tool_name)

    def _overdue(self, late: float) -> None:
        self.owner.disable(self._handler.hook)
        self._report(None, f"was cancelled {late:.0f} s ago and did not stop; its hook is disabled")

    def _fail(self, exc: BaseException | None, text: str, *, timed_out: bool = False) -> bool:
        """Report a failure of the running handler and apply its policy; return whether the dispatch ends."""
        handler = self._handler
        handler.stats.failures += 1
        if policy(handler, self._spec) == "continue":
            self._report(exc, text)
            return False
        self._report(exc, text, "blocked")
        if Block in self._spec.answers:
            self.outcome = Block(text, handler.label, "timed_out" if timed_out else "failed")
        else:
            self.outcome = Cancel(f"hook {handler.label}: {text}")
        return True

    def _report(self, exc: BaseException | None, text: str, outcome: Outcome = "continued") -> None:
        handler = self._handler
        error = HookError(
            hook_path=handler.hook,
            handler=handler.name,
            event=handler.event,
            reason=getattr(self.event, "reason", None),
            error=text,
            exception=exc,
            traceback="" if exc is None else traceback_text(exc),
            line=None if exc is None else line_of(exc),
            elapsed=perf_counter() - self._started,
            outcome=outcome,
        )
        self.owner.report(error)


_current: ContextVar[Dispatch | None] = ContextVar("agent_hooks dispatch", default=None)


def current_dispatch(owner: Owner | None = None) -> Dispatch | None:
    """Return the innermost dispatch (of `owner`, if given) that this code runs in: its handler, task or thread.

    The context variable is set and never reset, which is cheaper; a dispatch that is over does not count.
    """
    dispatch = _current.get()
    while dispatch is not None and not (dispatch._live and owner in (None, dispatch.owner)):
        dispatch = dispatch.parent
    return dispatch


def policy(handler: Handler, spec: EventSpec) -> OnError:
    """Return what happens when the handler fails."""
    if not spec.can_block:
        return "continue"
    return handler.on_error or spec.on_error


def _signed(answer: Answer, hook: str) -> Answer:
    """Return the answer with what only the runner may set: who answered."""
    if isinstance(answer, Block):
        return Block(answer.reason, hook)
    if isinstance(answer, Ask):
        return Ask(answer.title, answer.message, hook)
    return replace(answer, by=hook) if isinstance(answer, Rewrite) else answer
