"""Deadlines on asyncio: one timer per event loop cancels the task, and `settle` takes the cancellation back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from msgspec import Struct

from agent_hooks.concurrency.deadlines.base import GRACE, INF, KICK, CallWatch, Clock, Timer


class LoopTimer:
    """Watches every suspended handler of one event loop with at most one pending timer, re-armed lazily."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # References to loop and handle are weak, because the table of timers would keep every loop alive.
        self.loop = ref(loop)
        # asyncio's own loops tell monotonic time, which is asked here without them.
        self.now: Callable[[], float] = monotonic if type(loop).time is asyncio.BaseEventLoop.time else self._loop_time
        self._clocks: set[Clock] = set()
        self._when = INF
        self._handle: Callable[[], asyncio.TimerHandle | None] = lambda: None

    def _loop_time(self) -> float:
        return self.loop().time()  # type: ignore[union-attr]  # the caller runs on it

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
# Most programs have one event loop.
_latest: LoopTimer | None = None


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


class TaskCanceller:
    """Cancels one task, and tells our cancellations from those of others.

    `task`: `None` until the code suspends, because asyncio delivers a cancellation at a suspension; `baseline`: the
    cancellations that the task had been given before, without one that it gets at this suspension (`_must_cancel`, for
    which asyncio has no public name); `fired`: how often we have cancelled it.
    """

    if not TYPE_CHECKING:  # pragma: no branch  # always true at run time
        # The slots are those of the subclasses, which mypy would not accept.
        __slots__ = ()

    task: Any
    baseline: int
    fired: int
    # These two matter to clocks only.
    deadline: float
    gave_up: bool

    def settle(self, exc: BaseException | None) -> bool:
        """Take our cancellations back, and tell whether there are no others."""
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
        if not isinstance(exc, asyncio.CancelledError):
            # The code swallowed it, and asyncio delivers a cancellation only once.
            raise asyncio.CancelledError from exc
        return False

    def foreign(self, exc: BaseException) -> BaseException | None:
        """Return `exc` if it is a cancellation that came since the code began."""
        if self.task is None:
            # Nothing has suspended, so no cancellation was delivered: the code raised one of its own.
            return None
        return exc if isinstance(exc, asyncio.CancelledError) and self.task.cancelling() > self.baseline else None


class TaskWatch(TaskCanceller, Struct, eq=False):
    """Watches one call in a task."""

    running: set[CallWatch]
    task: Any
    baseline: int
    fired: int = 0
    deadline: float = INF
    gave_up: bool = False

    def cancel(self) -> None:
        """Cancel the task."""
        self.fired += 1
        self.task.cancel("stopped by agent_hooks")

    def close(self) -> None:
        """End the watch."""
        self.running.discard(self)


class AsyncioClock(TaskCanceller, Clock):
    """Cancels by `Task.cancel()`, again every 50 ms, and gives a handler up after a second."""

    __slots__ = ("baseline", "gives_up_at")

    # Set when the handler is first cancelled.
    gives_up_at: float

    @staticmethod
    def watch_call(running: set[CallWatch]) -> TaskWatch:
        task: Any = asyncio.current_task()
        watch = TaskWatch(running, task, task.cancelling() - task._must_cancel)
        running.add(watch)
        return watch

    def arm(self) -> None:
        timer: Any = self.timer
        if not self.attached:
            self.attached = True
            self.suspended.add(self)
            task: Any = asyncio.current_task()
            self.task = task
            self.baseline = task.cancelling() - task._must_cancel
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
