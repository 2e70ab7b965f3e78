"""A clock per dispatch, and the trampoline that drives a handler under it.

How a deadline works.

 1. A handler takes its first step while nothing is armed.  Most handlers end in it, and their deadline costs nothing.
 2. When a handler suspends, `drive` arms the clock.  The clock asks its timer, one per event loop, to call `expire` at
    the deadline.
 3. `expire` cancels the task.  The one loop sees the handler end and asks the clock to `settle`: was that our
    cancellation, somebody else's, or neither?  `settle` takes our cancellation back.
 4. The clock counts the handler's own time.  It stands while a dialog of that handler is open.
"""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import Any, ClassVar, Literal, NoReturn, Protocol

from agent_hooks.concurrency.forks import FORKS, end_child
from agent_hooks.errors import HookUsageError

INF = float("inf")
# Seconds between repeated cancellations of a handler that swallowed one.
KICK = 0.05
# Seconds after which a handler that swallows every cancellation is given up.
GRACE = 1.0

Stop = Literal["deadline", "shutdown", "asked"]


class DidNotStopError(Exception):
    """A handler swallowed its cancellation for longer than the grace."""


class LeftOpenError(Exception):
    """A handler has ended inside of a cancel scope or task group that it had entered."""

    def __init__(self) -> None:
        super().__init__("ended inside of a cancel scope or task group that it had entered; enter these by `with`")


class Timer(Protocol):
    """Tells clocks that their deadline has come."""

    def now(self) -> float:
        """Return the current time in seconds."""
        ...

    def watch(self, clock: Clock) -> None:
        """Call `clock.expire(now)` at `clock.deadline`; called again whenever the deadline moved."""

    def forget(self, clock: Clock) -> None:
        """Never call `clock` again."""


class CallWatch(Protocol):
    """Watches a tool that runs, or a question to the person, and can cancel it.

    It knows our cancellation from somebody else's, as a clock does, but it has no deadline and costs less.
    """

    def cancel(self) -> None:
        """Cancel the call; may be repeated for code that swallows a cancellation."""

    def settle(self, exc: BaseException | None) -> bool:
        """Tell, after the call ended with `exc`, whether this watch alone cancelled it.

        Raises somebody else's cancellation when the code swallowed it and it would not be delivered again.
        """
        ...

    def foreign(self, exc: BaseException) -> BaseException | None:
        """Return somebody else's cancellation if `exc` is one; it goes on to the caller."""
        ...

    def close(self) -> None:
        """End the watch."""


class Clock:
    """Limits the running handler of one dispatch to `limit` seconds of its own time.

    `parent` is the clock of the dispatch this one is nested in: a dialog in here stops that one too.  `suspended` is the
    runner's set of clocks whose handler has suspended.
    """

    # Whether a dispatch needs its clock before the first handler's first step.
    early: ClassVar[bool] = False
    begins_closed: ClassVar[bool] = False
    # Whether this is the child process of a fork by the running handler.
    forked: ClassVar[bool] = False

    # Seconds of own time left when the clock last began to run.
    left: float
    # The time at which it last began to run.
    since: float
    # The time at which the running handler first suspended.
    started: float

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
        "parent",
        "question",
        "since",
        "started",
        "stop",
        "suspended",
        "task",
        "timer",
        "watching",
    )

    def __init__(
        self, limit: float, suspended: set[Clock], parent: Clock | None = None, timer: Timer | None = None
    ) -> None:
        self.limit = limit
        self.suspended = suspended
        self.parent = parent
        self.timer = timer
        # The task that is cancelled, on a backend that cancels tasks.
        self.task: Any = None
        self.deadline = INF
        self.dialogs = 0
        # How often this clock has cancelled the running handler.
        self.fired = 0
        # The reason why it did.
        self.stop: Stop = "deadline"
        # The question that is handed over, if that is the reason.
        self.question: Any = None
        # Whether the running handler has suspended.
        self.armed = False
        # Whether the clock is bound to its task.
        self.attached = False
        # Whether a scope has to be opened before the next handler.
        self.closed = self.begins_closed
        # Whether the handler swallowed every cancellation for longer than the grace.
        self.gave_up = False
        # Whether the scopes of the task are watched.
        self.watching = self.begins_closed
        # The dispatch that it belongs to.  The watchdog reads it, and a backend that cannot make a handler stop (trio)
        # calls its `report_overdue` every second.
        self.dispatch: Any = None

    # ---- abstract: each backend provides these

    def attach(self) -> None:
        """Bind the clock to the current task, at the first suspension of the dispatch."""
        raise NotImplementedError

    def open(self) -> None:
        """Prepare for the next handler; called when `closed`."""

    def cancel(self) -> None:
        """Cancel the running handler."""
        raise NotImplementedError

    def settle(self, exc: BaseException | None) -> bool:
        """Tell, after a handler ended with `exc`, whether this clock alone stopped it.

        Raises somebody else's cancellation when the handler swallowed it and it would not be delivered again.
        """
        raise NotImplementedError

    def foreign(self, exc: BaseException) -> BaseException | None:
        """Return somebody else's cancellation if `exc` is one; it goes on to the emitting code."""
        raise NotImplementedError

    @staticmethod
    def watch_call(running: set[CallWatch]) -> CallWatch:
        """Return the watch over a call of the current task; it is in `running` until it is closed."""
        raise NotImplementedError

    def watch_scopes(self) -> None:
        """Note the innermost scope of the current task, for `left_open`; called unless the clock is `watching`."""

    def left_open(self) -> bool:
        """Tell whether the handler that has just ended left a scope open; `False` if the scopes are not watched."""
        return False

    async def leave_scopes(self) -> None:
        """Leave the scopes that the handler left open, and end their tasks."""

    # ---- shared by the backends

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
        """Stop the running handler, which has suspended; keep its question, which another program puts to the person."""
        if self.question is not None:
            return
        assert self.timer is not None
        self.question = question
        self.stop = "asked"
        self.expire(self.timer.now())

    def close(self) -> None:
        """End the clock with its dispatch."""
        # Clock and dispatch would keep each other alive.
        self.dispatch = None
        # A dialog that outlives the dispatch must not start the time again.
        self.armed = False
        if self.attached:
            self.suspended.discard(self)
            assert self.timer is not None
            self.timer.forget(self)

    def _move(self, deadline: float) -> None:
        self.deadline = deadline
        assert self.timer is not None
        self.timer.watch(self)


class NoWatch:
    """The watch where no event loop runs: no code is cancelled there."""

    def cancel(self) -> None:
        pass

    def settle(self, exc: BaseException | None) -> bool:
        return False

    def foreign(self, exc: BaseException) -> BaseException | None:
        return None

    def close(self) -> None:
        pass


class StillClock(Clock):
    """The clock where no event loop runs: no handler is cancelled there, and none can wait."""

    __slots__ = ()

    def attach(self) -> None:
        pass

    @staticmethod
    def watch_call(running: set[CallWatch]) -> CallWatch:
        return NoWatch()

    def arm(self) -> None:
        raise HookUsageError("a handler waits for something, and no event loop runs here")

    def settle(self, exc: BaseException | None) -> bool:
        return False

    def foreign(self, exc: BaseException) -> BaseException | None:
        return None


class ForkedClock(StillClock):
    """The clock of a dispatch in a child process that its handler has forked."""

    __slots__ = ()

    forked: ClassVar[bool] = True

    def left_open(self) -> NoReturn:  # pragma: no cover  # a forked child leaves no measurement
        """End this process, whose handler has just ended."""
        end_child(str(self.dispatch))


@types.coroutine
def drive(coro: Generator[Any, Any, Any], waiting: Any, clock: Clock) -> Generator[Any, Any, Any]:
    """Await `coro`, which is already suspended on `waiting`; arm `clock` whenever a handler first suspends.

    Raises `DidNotStopError` when the clock gave up on the running handler; the coroutine is then closed.
    """
    send, throw = coro.send, coro.throw
    before = FORKS[0]
    try:
        while True:
            if FORKS[0] != before:  # pragma: no cover  # a forked child leaves no measurement
                end_child(str(clock.dispatch))
            if not clock.armed:
                clock.arm()
            try:
                value = yield waiting
            except GeneratorExit:
                # The awaiting coroutine is closed, and the handler did not do it.
                clock.gave_up = True
                coro.close()
                raise
            except BaseException as exc:
                # The exception is thrown into the handler, which decides.
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
    except RuntimeError:
        # The handler ignored GeneratorExit too, and Python complains of it on stderr.  Nothing stronger exists.  To keep
        # the generator would be worse: Python closes it when the loop is gone, and its endless `await` would spin.
        pass
