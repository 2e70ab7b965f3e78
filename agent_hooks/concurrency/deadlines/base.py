"""A clock per dispatch, and the trampoline that drives a handler under it.

Theory of operation.  A handler's first step runs with nothing armed: most handlers end in it, and then a deadline costs
nothing.  When it suspends, `drive` arms the clock, which asks its timer (one per event loop) to call `expire` at the
deadline.  `expire` cancels the task; the loop in `runner` sees the handler end, asks the clock to `settle` whether that
was our cancellation, somebody else's, or neither, and takes our part back.  The clock is the handler's own time: it
stands while a dialog of that handler is open.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from typing import Any, ClassVar, Literal, Protocol

from agent_hooks.errors import HookUsageError

INF = float("inf")
KICK = 0.05  # seconds between repeated cancellations of a handler that swallowed one
GRACE = 1.0  # seconds after which a handler that swallows every cancellation is given up

Stop = Literal["deadline", "shutdown", "asked"]


class DidNotStopError(Exception):
    """A handler swallowed its cancellation for longer than the grace."""


class Timer(Protocol):
    """What tells a clock that its deadline has come."""

    def now(self) -> float:
        """Return the current time in seconds."""
        ...

    def watch(self, clock: Clock) -> None:
        """Call `clock.expire(now)` at `clock.deadline`; called again whenever the deadline moved."""

    def forget(self, clock: Clock) -> None:
        """Never call `clock` again."""


class Onlooker(Protocol):
    """Knows which cancellations of a task are somebody else's."""

    def settle(self, exc: BaseException | None) -> bool:
        """As of a clock."""
        ...

    def foreign(self, exc: BaseException) -> BaseException | None:
        """As of a clock."""
        ...


class Clock:
    """Limits the running handler of one dispatch to `limit` seconds of its own time.

    `parent` is the clock of the dispatch this one is nested in: a dialog in here stops that one too.  `suspended` is the
    runner's set of clocks whose handler has suspended.  `overdue` is called every second by a backend that cannot make a
    handler stop (trio).
    """

    early: ClassVar[bool] = False  # whether a dispatch needs its clock before the first handler's first step
    begins_closed: ClassVar[bool] = False

    left: float  # seconds of own time left when the clock last began to run
    since: float  # when it last began to run
    started: float  # when the running handler first suspended

    __slots__ = (
        "armed",
        "attached",
        "closed",
        "deadline",
        "dialogs",
        "dispatch",
        "fired",
        "gave_up",
        "left",
        "limit",
        "overdue",
        "parent",
        "question",
        "since",
        "started",
        "stop",
        "suspended",
        "task",
        "timer",
    )

    def __init__(
        self, limit: float, suspended: set[Clock], parent: Clock | None = None, timer: Timer | None = None
    ) -> None:
        self.limit = limit
        self.suspended = suspended
        self.parent = parent
        self.timer = timer
        self.task: Any = None  # which it is bound to, where a task is what is cancelled
        self.overdue: Callable[[float], None] | None = None
        self.deadline = INF
        self.dialogs = 0
        self.fired = 0  # how often the running handler has been cancelled by us
        self.stop: Stop = "deadline"  # why it was
        self.question: Any = None  # what it had asked, if that is why
        self.armed = False  # whether the running handler has suspended
        self.attached = False  # whether the clock is bound to its task
        self.closed = self.begins_closed  # whether a scope has to be opened before the next handler
        self.gave_up = False
        self.dispatch: Any = None  # whose it is; for the watchdog

    # ---- what a backend provides

    def attach(self) -> None:
        """Bind the clock to the current task, at the first suspension of the dispatch."""
        raise NotImplementedError

    def open(self) -> None:
        """Prepare for the next handler; called when `closed`."""

    def cancel(self) -> None:
        """Cancel what the handler waits for."""
        raise NotImplementedError

    def settle(self, exc: BaseException | None) -> bool:
        """Tell, after a handler ended with `exc`, whether we stopped it and nobody else did.

        Raises somebody else's cancellation when the handler swallowed it and nobody would deliver it again.
        """
        raise NotImplementedError

    def foreign(self, exc: BaseException) -> BaseException | None:
        """Return somebody else's cancellation if that is what `exc` is: it has to be passed on."""
        raise NotImplementedError

    @classmethod
    def onlooker(cls) -> Onlooker:
        """Return what tells cancellations of the current task apart, without a clock."""
        raise NotImplementedError

    # ---- what they share

    def arm(self) -> None:
        """Start the running handler's time: it has suspended for the first time."""
        if not self.attached:
            self.attach()
            self.attached = True
            self.suspended.add(self)
        self.armed = True
        timer: Any = self.timer
        self.started = self.since = now = timer.now()
        self.left = limit = self.limit
        if limit != INF:
            self.deadline = INF if self.dialogs else now + limit
            timer.watch(self)

    def pause(self) -> None:
        """A dialog opened: the time stands, here and in the dispatches this one is nested in."""
        self.dialogs += 1
        if self.dialogs == 1 and self.armed and not self.fired and self.limit != INF:
            assert self.timer is not None
            self.left -= self.timer.now() - self.since
            self._move(INF)
        if self.parent is not None:
            self.parent.pause()

    def resume(self) -> None:
        """The dialog closed: the time goes on."""
        self.dialogs -= 1
        if self.dialogs == 0 and self.armed and not self.fired and self.limit != INF:
            assert self.timer is not None
            self.since = self.timer.now()
            self._move(self.since + max(self.left, 0.0))
        if self.parent is not None:
            self.parent.resume()

    def expire(self, now: float) -> None:
        """Stop the running handler; called by the timer at the deadline."""
        self.fired += 1
        self.cancel()

    def shut_down(self) -> None:
        """Stop the running handler, because the session ends."""
        if self.armed and not self.fired:
            assert self.timer is not None
            self.stop = "shutdown"
            self.expire(self.timer.now())

    def hand_over(self, question: Any) -> None:
        """Stop the running handler, which has suspended: its question goes to the person by another way."""
        if self.question is not None:
            return
        assert self.timer is not None
        self.question = question
        self.stop = "asked"
        self.expire(self.timer.now())

    def close(self) -> None:
        """End the clock with its dispatch."""
        self.overdue = self.dispatch = None  # or clock and dispatch would keep each other alive
        self.armed = False  # a dialog that outlives the dispatch must not start its time again
        if self.attached:
            self.suspended.discard(self)
            assert self.timer is not None
            self.timer.forget(self)

    def _move(self, deadline: float) -> None:
        self.deadline = deadline
        assert self.timer is not None
        self.timer.watch(self)


class StillClock(Clock):
    """Where no event loop runs: nobody cancels anything, and nobody can wait."""

    __slots__ = ()

    def attach(self) -> None:
        pass

    @classmethod
    def onlooker(cls) -> Onlooker:
        return cls(INF, set())

    def arm(self) -> None:
        raise HookUsageError("a handler waits for something, and no event loop runs here")

    def settle(self, exc: BaseException | None) -> bool:
        return False

    def foreign(self, exc: BaseException) -> BaseException | None:
        return None


@types.coroutine
def drive(coro: Generator[Any, Any, Any], waiting: Any, clock: Clock) -> Generator[Any, Any, Any]:
    """Await `coro`, which is already suspended on `waiting`; arm `clock` whenever a handler first suspends.

    Raises `DidNotStopError` when the clock gave up on the running handler; the coroutine is then closed.
    """
    send, throw = coro.send, coro.throw
    try:
        while True:
            if not clock.armed:
                clock.arm()
            try:
                value = yield waiting
            except GeneratorExit:  # the awaiting coroutine is closed, and not by the handler
                clock.gave_up = True
                coro.close()
                raise
            except BaseException as exc:  # whatever is thrown in belongs to the handler
                if clock.gave_up:
                    _abandon(coro)
                    raise DidNotStopError from None
                waiting = throw(exc)
            else:
                waiting = send(value)
    except StopIteration as done:
        return done.value


def cancellation_in(exc: BaseException, kind: type[BaseException] | tuple[()]) -> BaseException | None:
    """Return the cancellation that `exc` is, or that a group of nothing else holds; `None` for any other exception."""
    while isinstance(exc, BaseExceptionGroup) and exc.split(kind)[1] is None:
        exc = exc.exceptions[0]
    return exc if isinstance(exc, kind) else None


def _abandon(coro: Generator[Any, Any, Any]) -> None:
    try:
        coro.close()
    except RuntimeError:  # it ignored GeneratorExit too; nothing stronger exists, and Python complains of it on stderr
        pass  # keeping it would be worse: closed when the loop is gone, its endless `await` would spin at exit
