"""Deadlines on asyncio: one timer per event loop cancels the task, and `settle` takes the cancellation back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextvars import Context
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
        # A copy of the caller's context would keep its dispatch, and so its hooks, until the timer ticks.
        self._context = Context()
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
            loop: Any = self.loop()
            self._handle = ref(loop.call_at(clock.deadline, self._tick, context=self._context))

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
            # The code swallowed it, and asyncio delivers a cancellation only once.  A cancel scope of anyio takes none
            # but its own, which the exception of the code may hide.
            raise _cancellation_behind(exc) or asyncio.CancelledError from exc
        return False

    def foreign(self, exc: BaseException) -> BaseException | None:
        """Return `exc` if it is a cancellation that came since the code began."""
        if self.task is None:
            # Nothing has suspended, so no cancellation was delivered: the code raised one of its own.
            return None
        return exc if isinstance(exc, asyncio.CancelledError) and self.task.cancelling() > self.baseline else None


def _cancellation_behind(exc: BaseException | None) -> asyncio.CancelledError | None:
    """Return the cancellation during which `exc` was raised."""
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        if isinstance(exc, asyncio.CancelledError):
            return exc
        seen.add(id(exc))
        exc = exc.__context__
    return None


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

    __slots__ = ("baseline", "gives_up_at", "key", "outer", "state")

    # Set when the handler is first cancelled.
    gives_up_at: float
    # Set by `watch_scopes`: a reference to the task, anyio's state of it once there is one, and the innermost scope.
    key: ref[asyncio.Task[Any]]
    state: Any
    outer: Any

    @staticmethod
    def watch_call(running: set[CallWatch]) -> TaskWatch:
        task: Any = asyncio.current_task()
        watch = TaskWatch(running, task, task.cancelling() - task._must_cancel)
        running.add(watch)
        return watch

    def attach(self) -> None:
        # `watch_scopes` has asked for the task, which takes a third of a suspension where it is a system call.
        self.task = asyncio.current_task() if not self.watching else self.key()
        self.baseline = self.task.cancelling() - self.task._must_cancel
        if self.timer is None:
            self.timer = loop_timer(self.task.get_loop())

    def expire(self, now: float) -> None:
        if not self.fired:
            self.gives_up_at = now + GRACE
        self.gave_up = now >= self.gives_up_at
        self._move(now + KICK)
        super().expire(now)

    def cancel(self) -> None:
        assert self.task is not None
        self.task.cancel("stopped by agent_hooks")

    def watch_scopes(self) -> None:
        try:
            task: Any = asyncio.current_task()
        except RuntimeError:
            # This program drives a coroutine by hand now, after an event loop has ended.
            return
        if task is not None:
            self.watching = True
            self.key = key = ref(task)
            self.state = state = _state_of(key)
            self.outer = None if state is None else state.cancel_scope

    def left_open(self) -> bool:
        if not self.watching:
            return False
        state = self.state
        if state is None:
            state = self.state = _state_of(self.key)
            return state is not None and state.cancel_scope is not None
        return state.cancel_scope is not self.outer

    async def leave_scopes(self) -> None:
        # The tasks in a scope are cancelled, and go on until they have ended.
        for scope in self._left():
            scope.cancel()
            scope.__exit__(None, None, None)
        self.outer = self.state.cancel_scope

    def _left(self) -> list[Any]:
        """Return the scopes that were entered inside of the noted one; none if the handler left that one."""
        left, scope = [], self.state.cancel_scope
        while scope is not None and scope is not self.outer:
            left.append(scope)
            scope = scope._parent_scope
        return left if scope is self.outer else []


# Kept, because it is needed for each handler that suspends.
_get_state: Callable[[Any], Any] | None = None


def _state_of(key: ref[asyncio.Task[Any]]) -> Any:
    """Return the notes of anyio on a task, among them the innermost scope; `None` before the task's first scope.

    anyio has no public name for it; `test_left_open` guards the private one.
    """
    global _get_state
    if _get_state is None:
        if (backend := sys.modules.get("anyio._backends._asyncio")) is None:
            return None
        # `get` of the WeakKeyDictionary itself is Python code.
        _get_state = backend._task_states.data.get
    return _get_state(key)
