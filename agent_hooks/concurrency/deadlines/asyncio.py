"""Deadlines on asyncio: one timer per event loop cancels the task; the loop in `runner` takes that back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary, ref

from msgspec import Struct

from agent_hooks.concurrency.deadlines.base import GRACE, INF, KICK, Clock, Timer


class LoopTimer:
    """Watches every suspended handler of one event loop with at most one pending timer, re-armed lazily."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # loop and handle weakly, or the table of timers would keep every loop alive
        self.loop = ref(loop)
        # what asyncio's own loops tell, asked without them
        self.now: Callable[[], float] = monotonic if type(loop).time is asyncio.BaseEventLoop.time else self._loop_time
        self._clocks: set[Clock] = set()
        self._when = INF
        self._handle: Callable[[], asyncio.TimerHandle | None] = lambda: None

    def _loop_time(self) -> float:
        return self.loop().time()  # type: ignore[union-attr]  # who asks runs on it

    def watch(self, clock: Clock) -> None:
        """Have `clock` expire at its deadline."""
        self._clocks.add(clock)
        if clock.deadline < self._when:
            if (pending := self._handle()) is not None:
                pending.cancel()
            self._when = clock.deadline
            self._handle = ref(self.loop().call_at(clock.deadline, self._tick))  # type: ignore[union-attr]  # as above

    def forget(self, clock: Clock) -> None:
        """Leave `clock` alone; the timer itself stays until it ticks, which is cheaper than moving it."""
        self._clocks.discard(clock)

    def _tick(self) -> None:
        now = self.now()
        self._when = INF
        for clock in tuple(self._clocks):
            if clock.deadline <= now:
                clock.expire(now)
        if self._clocks:
            self.watch(min(self._clocks, key=lambda clock: clock.deadline))


_timers: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTimer] = WeakKeyDictionary()
_latest: LoopTimer | None = None  # there is one event loop, most of the time


def loop_timer(loop: asyncio.AbstractEventLoop) -> Timer:
    """Return the one timer of `loop`."""
    global _latest
    timer = _latest
    if timer is None or timer.loop() is not loop:
        timer = _timers.get(loop)
        if timer is None:
            timer = _timers[loop] = LoopTimer(loop)
        _latest = timer
    return timer


class TaskOnlooker(Struct, eq=False):
    """Knows how many cancellations of a task were under way when it began to look."""

    task: asyncio.Task[object]
    baseline: int

    def settle(self, exc: BaseException | None) -> bool:
        """Raise a cancellation that was swallowed, for asyncio delivers one only once."""
        if self.task.cancelling() > self.baseline and not isinstance(exc, asyncio.CancelledError):
            raise asyncio.CancelledError from exc
        return False

    def foreign(self, exc: BaseException) -> BaseException | None:
        """Return `exc` if it is a cancellation that came since."""
        return exc if isinstance(exc, asyncio.CancelledError) and self.task.cancelling() > self.baseline else None


class AsyncioClock(Clock):
    """Cancels by `Task.cancel()`, again every 50 ms, and gives a handler up after a second."""

    __slots__ = ("baseline", "gives_up_at")

    baseline: int  # cancellations of the task that were under way before ours
    gives_up_at: float  # set when it is cancelled

    def attach(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task, self.baseline = task, task.cancelling()

    @classmethod
    def onlooker(cls) -> TaskOnlooker:
        task: Any = asyncio.current_task()
        return TaskOnlooker(task, task.cancelling())

    def arm(self) -> None:
        timer: Any = self.timer
        if not self.attached:
            self.attached = True
            self.suspended.add(self)
            task: Any = asyncio.current_task()
            self.task = task
            self.baseline = task.cancelling()
            if timer is None:
                timer = self.timer = loop_timer(task.get_loop())
        self.armed = True
        self.started = self.since = now = timer.now()
        self.left = limit = self.limit
        if limit != INF:
            self.deadline = INF if self.dialogs else now + limit
            timer.watch(self)

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
        self.deadline = INF
        if self.task is None:
            return False
        fired = self.fired
        if fired:
            self.fired, self.gave_up = 0, False
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
