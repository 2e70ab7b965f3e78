"""Deadlines on trio: a cancel scope per dispatch, opened before a handler's first step.

trio cannot take a cancellation back, and it cannot abandon a task that will not stop.  A handler that swallows every
cancellation is therefore reported every second until it ends.
"""

from __future__ import annotations

from typing import ClassVar

import trio

from agent_hooks.concurrency.deadlines.base import GRACE, INF, CallWatch, Clock, Timer, cancellation_in


class ScopeTimer:
    """Lets trio keep the deadlines, and reports every second the handlers that outlived theirs."""

    def __init__(self) -> None:
        self._clocks: set[TrioClock] = set()
        self._checking = False

    def now(self) -> float:
        """Return trio's time."""
        return trio.current_time()

    def watch(self, clock: Clock) -> None:
        """Move the deadline of the clock's scope."""
        assert isinstance(clock, TrioClock)
        assert clock.scope is not None
        clock.scope.deadline = clock.deadline
        self.check_on(clock)

    def forget(self, clock: Clock) -> None:
        """Leave `clock` alone."""
        assert isinstance(clock, TrioClock)
        self._clocks.discard(clock)

    def check_on(self, clock: TrioClock) -> None:
        """Report `clock` when its handler goes on past the deadline."""
        self._clocks.add(clock)
        if not self._checking:
            self._checking = True
            trio.lowlevel.spawn_system_task(self._check_all, name="agent_hooks overdue handlers")

    async def _check_all(self) -> None:
        try:
            while self._clocks:
                await trio.sleep(GRACE)
                now = trio.current_time()
                for clock in tuple(self._clocks):
                    late = now - min(clock.deadline, clock.stopped_at)
                    if late >= GRACE and clock.armed and clock.overdue is not None:
                        clock.overdue(late)
        finally:
            self._checking = False


_timer: trio.lowlevel.RunVar[ScopeTimer] = trio.lowlevel.RunVar("agent_hooks timer")


def scope_timer() -> ScopeTimer:
    """Return the one timer of this trio run."""
    try:
        return _timer.get()
    except LookupError:
        timer = ScopeTimer()
        _timer.set(timer)
        return timer


class TrioClock(Clock):
    """Cancels by its scope; trio delivers that at every checkpoint until the handler ends."""

    early: ClassVar[bool] = True
    begins_closed: ClassVar[bool] = True

    __slots__ = ("scope", "stopped_at")

    def __init__(
        self, limit: float, suspended: set[Clock], parent: Clock | None = None, timer: Timer | None = None
    ) -> None:
        super().__init__(limit, suspended, parent, timer)
        self.scope: trio.CancelScope | None = None
        self.stopped_at = INF

    def attach(self) -> None:
        if self.timer is None:
            self.timer = scope_timer()

    @staticmethod
    def watch_call(running: set[CallWatch]) -> TrioCallWatch:
        return TrioCallWatch(running)

    def open(self) -> None:
        self.scope = trio.CancelScope()
        self.scope.__enter__()
        self.closed = False

    def cancel(self) -> None:
        assert self.scope is not None
        self.stopped_at = trio.current_time()
        self.scope.cancel()
        if isinstance(self.timer, ScopeTimer):
            self.timer.check_on(self)

    def settle(self, exc: BaseException | None) -> bool:
        scope = self.scope
        if scope is None:
            # It was settled already, and the fold of a handed-over question raised.
            return False
        if not scope.cancel_called:
            # The next handler gets a deadline of its own.
            self.deadline = scope.deadline = INF
            return False
        self.scope, self.closed = None, True
        self.fired, self.deadline, self.stopped_at = 0, INF, INF
        try:
            swallowed = scope.__exit__(type(exc) if exc else None, exc, exc.__traceback__ if exc else None)
        except BaseException as rest:
            # The group that remains without our cancellations.
            exc, swallowed = rest, False
        return bool(swallowed) or exc is None or self.foreign(exc) is None

    def foreign(self, exc: BaseException) -> BaseException | None:
        return cancellation_in(exc, trio.Cancelled)

    def close(self) -> None:
        super().close()
        if self.scope is not None:
            scope, self.scope = self.scope, None
            scope.__exit__(None, None, None)


class TrioCallWatch(TrioClock):
    """Watches one call by a scope of its own."""

    __slots__ = ("_running",)

    def __init__(self, running: set[CallWatch]) -> None:
        super().__init__(INF, set())
        self._running = running
        running.add(self)
        self.open()

    def close(self) -> None:
        super().close()
        self._running.discard(self)


__all__ = ["ScopeTimer", "Timer", "TrioCallWatch", "TrioClock", "scope_timer"]
