"""Deadlines on asyncio: one timer per event loop cancels the task; the loop in `runner` takes that back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary, ref

from agent_hooks.deadlines.base import GRACE, INF, KICK, Clock, Timer


class LoopTimer:
    """Watches every suspended handler of one event loop with at most one pending timer, re-armed lazily."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # loop and handle weakly, or the table of timers would keep every loop alive
        self._loop = ref(loop)
        self._clocks: set[Clock] = set()
        self._when = INF
        self._handle: Callable[[], asyncio.TimerHandle | None] = lambda: None

    def now(self) -> float:
        """Return the loop's time."""
        return self._running().time()

    def watch(self, clock: Clock) -> None:
        """Have `clock` expire at its deadline."""
        self._clocks.add(clock)
        if clock.deadline < self._when:
            if (pending := self._handle()) is not None:
                pending.cancel()
            self._when = clock.deadline
            self._handle = ref(self._running().call_at(clock.deadline, self._tick))

    def forget(self, clock: Clock) -> None:
        """Leave `clock` alone; the timer itself stays until it ticks, which is cheaper than moving it."""
        self._clocks.discard(clock)

    def _running(self) -> asyncio.AbstractEventLoop:
        loop = self._loop()
        assert loop is not None, "who asks runs on it"
        return loop

    def _tick(self) -> None:
        now = self.now()
        self._when = INF
        for clock in tuple(self._clocks):
            if clock.deadline <= now:
                clock.expire(now)
        if self._clocks:
            self.watch(min(self._clocks, key=lambda clock: clock.deadline))


_timers: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTimer] = WeakKeyDictionary()


def loop_timer(loop: asyncio.AbstractEventLoop) -> Timer:
    """Return the one timer of `loop`."""
    timer = _timers.get(loop)
    if timer is None:
        timer = _timers[loop] = LoopTimer(loop)
    return timer


class AsyncioClock(Clock, eq=False):
    """Cancels by `Task.cancel()`, again every 50 ms, and gives a handler up after a second."""

    task: asyncio.Task[object] | None = None
    baseline: int = 0  # cancellations of the task that were under way before ours
    gives_up_at: float = INF

    def attach(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task, self.baseline = task, task.cancelling()

    def arm(self) -> None:
        if self.timer is None:
            self.timer = loop_timer(asyncio.get_running_loop())
        super().arm()

    def expire(self, now: float) -> None:
        if not self.fired:
            self.gives_up_at = now + GRACE
        self.gave_up = now >= self.gives_up_at
        self._move(now + KICK)
        super().expire(now)

    def cancel(self) -> None:
        assert self.task is not None
        self.task.cancel("stopped by agent_hooks")

    def settle(self, exc: BaseException | None) -> bool:
        fired, self.fired, self.deadline, self.gave_up = self.fired, 0, INF, False
        if self.task is None:
            return False
        for _ in range(fired):
            self.task.uncancel()
        if self.task.cancelling() <= self.baseline:
            return fired > 0
        if not isinstance(exc, asyncio.CancelledError):  # swallowed, and asyncio delivers a cancellation only once
            raise asyncio.CancelledError from exc
        return False

    def foreign(self, exc: BaseException) -> BaseException | None:
        if self.task is None:  # nothing has suspended, so nothing can have been delivered: the handler raised its own
            return None
        return exc if isinstance(exc, asyncio.CancelledError) and self.task.cancelling() > self.baseline else None
