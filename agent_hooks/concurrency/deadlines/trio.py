"""Deadlines on trio: a cancel scope per dispatch, opened before a handler's first step.

trio cannot take a cancellation back, and it cannot abandon a task that will not stop.  A handler that swallows every
cancellation is therefore reported every second until it ends.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

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
                    if late >= GRACE and clock.armed and clock.dispatch is not None:
                        clock.dispatch.report_overdue(late)
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

    __slots__ = ("scope", "status", "stopped_at")

    # The innermost scope of the task.  trio has no public name for it, and `test_left_open` guards the private one.
    status: Any

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
        self.status = self.scope._cancel_status
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
        if trio.current_effective_deadline() != -INF:
            # No scope around the handler is cancelled, so the handler raised a cancellation of its own.
            return None
        return cancellation_in(exc, trio.Cancelled)

    def left_open(self) -> bool:
        # The task is in the innermost scope only, and no other task can be in this one.
        return self.scope is not None and not self.status._tasks

    async def leave_scopes(self) -> None:
        task = trio.lowlevel.current_task()
        nurseries = [each for each in task.child_nurseries if self._holds(each.cancel_scope)]
        for nursery in reversed(nurseries):
            nursery.cancel_scope.cancel()
            # This is the part of `__aexit__` that waits for the tasks; the object with that method is out of reach.
            # The errors are those of a nursery that trio itself leaves, for a generator that was given up in a loop.
            with suppress(IndexError, AssertionError):
                await nursery._nested_child_finished(None)
        scope, self.scope = self.scope, None
        assert scope is not None
        # trio raises this for the inner scopes that are left open, and leaves them too.
        with suppress(RuntimeError):
            scope.__exit__(None, None, None)
        self.closed = True
        self.fired, self.deadline, self.stopped_at = 0, INF, INF

    def _holds(self, scope: Any) -> bool:
        """Tell whether a scope was entered inside of the clock's own."""
        status = scope._cancel_status
        while status is not None and status is not self.status:
            status = status._parent
        return status is not None

    def close(self) -> None:
        super().close()
        scope, self.scope = self.scope, None
        if scope is not None:
            # An `except`, because `suppress` costs as much as the rest of this method.
            try:
                scope.__exit__(None, None, None)
            except RuntimeError:
                # As in `leave_scopes`.
                pass


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
