"""Name the handler that blocks the event loop, and the handler that takes long.

How the watchdog works.

 1. A daemon thread wakes four times a second, so that a dispatch pays nothing for it.  The process has one such thread
    for all runners.  It starts with the first runner and ends with the last one.
 2. It reads the stack of each event loop's thread.  The frame of `Dispatch.call_handlers` there knows the running
    handler, and the frames inside of it give file and line.  So a runner that does nothing costs next to nothing.
 3. To tell whether the loop is blocked, the thread posts a callback and checks whether it has run.
 4. It adds up the own time of each suspended handler: the time while its clock is armed and none of its dialogs is open.
 5. It names each handler once for either fault, and it stops none: a thread cannot stop the code that blocks a loop.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from types import FrameType

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.concurrency.deadlines import Clock, call_soon
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.loop import Dispatch
from agent_hooks.errors import HookError, log, place_among
from agent_hooks.runner.listeners import error_of

# Seconds between two checks.
INTERVAL = 0.25
# Seconds that the loop may be blocked.
BLOCKED = 1.0
# Seconds of its own time that a handler may take.
SLOW = 5.0
_CODE = Dispatch.call_handlers.__code__
_REMEDY = "nothing else of the agent runs meanwhile, and no deadline can stop it: use a plain `def`, or await something"
_TASK = "long work belongs in api.start_task(...)"


class _Stuck(Struct):
    """A handler that blocks the loop, its report, the place of its code, and the seconds so far."""

    handler: Handler
    error: HookError
    where: str
    seconds: float


class Watchdog:
    """Watches the handlers of one runner, `owner`, from `start` to `stop`; each is named once for either fault.

    `suspended`: the runner's clocks whose handler has suspended.  `report` is called on the event loop.
    """

    def __init__(self, owner: object, suspended: set[Clock], report: Callable[[HookError], None]) -> None:
        self._owner = owner
        self._suspended = suspended
        self._report = report
        self._over = False
        # The thread of the event loop.
        self._loop = 0
        self._soon: Callable[[Callable[[], object]], object] = lambda callback: None
        # Whether the loop has run the callback that was posted last.
        self._turned = True
        # The dispatch and the handler that the last check found on the loop's stack.
        self._running: Dispatch | None = None
        self._handler: Handler | None = None
        # The time of the first check that found this handler; the loop has not turned since.
        self._since = 0.0
        # Handlers to report when the loop turns again.
        self._stuck: list[_Stuck] = []
        # The time at which each handler suspended, and its own seconds so far.
        self._own: dict[Clock, tuple[float, float]] = {}
        self._named: set[tuple[str, Handler]] = set()

    def start(self) -> None:
        """Start to watch the event loop that calls this; without an event loop there is nothing to watch."""
        self._loop = threading.get_ident()
        if (soon := call_soon()) is None:
            return
        self._soon = soon
        _thread.add(self)

    def forget(self) -> None:
        """Name each handler again, because hooks were loaded again; the old handlers are not kept in memory."""
        self._named.clear()

    def stop(self) -> None:
        """Stop; faults found by then are not reported any more."""
        self._over = True
        _thread.remove(self)

    @property
    def loop(self) -> int:
        """The thread of the event loop."""
        return self._loop

    @property
    def owner(self) -> object:
        """The runner's engine, which owns the dispatches to watch."""
        return self._owner

    @property
    def needs_check(self) -> bool:
        """Whether a handler has suspended, or was found on the loop's stack by the last check."""
        return bool(self._suspended or self._own or self._handler is not None)

    def check(self, now: float, passed: float, running: Dispatch | None, inside: list[FrameType]) -> bool:
        """Check once, `passed` seconds after the last time; return whether the event loop is still there.

        `running`: the dispatch of this runner on the loop's stack, if there is one; `inside`: the frames inside of it.
        """
        try:
            self._check_loop(now, running, inside)
            self._check_clocks(passed)
        except RuntimeError:
            # The event loop is closed, so there is nothing left to watch.
            return False
        # A logging handler of a hook raised.  The thread goes on, because it watches other runners too.
        except Exception:
            return True
        return True

    # ---- blocking

    def _check_loop(self, now: float, running: Dispatch | None, inside: list[FrameType]) -> None:
        # A dispatch has no handler yet before the first one is called.
        handler: Handler | None = getattr(running, "handler", None)
        last = self._stuck[-1:]
        if running is None or handler is None or handler.threaded:
            self._running = self._handler = None
        elif self._turned or running is not self._running or handler is not self._handler:
            self._running, self._handler, self._since = running, handler, now
            if self._turned:
                self._turned = False
                self._soon(self._turn)
        elif last and last[0].handler is handler:
            last[0].seconds = now - self._since
        elif now - self._since >= BLOCKED and self._first("blocks", handler):
            self._name(running, handler, inside[::-1], now - self._since)

    def _name(self, running: Dispatch, handler: Handler, frames: list[FrameType], seconds: float) -> None:
        """Log the handler that blocks the loop, on this thread; its report has to wait until the loop turns."""
        stack = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames)
        places = [(frame.filename, frame.lineno or 0) for frame in stack]
        where = f"{stack[-1].name} at {stack[-1].filename}:{stack[-1].lineno}" if stack else handler.name
        error = error_of(
            running, f"blocks the event loop, in {where}; {_REMEDY}", elapsed=seconds, place=place_among(places)
        )
        error = replace(error, traceback="".join(stack.format()))
        self._stuck.append(_Stuck(handler, error, where, seconds))
        log().warning("%s", error)

    def _turn(self) -> None:
        """Note, on the event loop, that the loop turns, and report the handlers that had blocked it."""
        self._turned = True
        while self._stuck:
            each = self._stuck.pop(0)
            text = f"blocked the event loop for {each.seconds:.1f} s, in {each.where}; {_REMEDY}"
            self._report_later(replace(each.error, error=text, elapsed=each.seconds))

    def _report_later(self, error: HookError) -> None:
        if not self._over:
            self._report(error)

    # ---- taking long

    def _check_clocks(self, passed: float) -> None:
        own: dict[Clock, tuple[float, float]] = {}
        for clock in self._suspended.copy():
            dispatch: Dispatch | None = clock.dispatch
            handler: Handler | None = None if dispatch is None else dispatch.handler
            if not clock.armed or dispatch is None or handler is None:
                continue
            started, seconds = self._own.get(clock, (clock.started, 0.0))
            # Another handler of that dispatch runs now.
            if started != clock.started:
                seconds = 0.0
            elif not clock.dialogs:
                seconds += passed
            own[clock] = clock.started, seconds
            if seconds >= SLOW and self._first("slow", handler):
                text = f"takes long, {SLOW:g} s of its own time so far, and the handlers after it wait; {_TASK}"
                error = error_of(dispatch, text, elapsed=seconds, place=(handler.file, handler.line))
                self._soon(partial(self._report_later, error))
        self._own = own

    def _first(self, fault: str, handler: Handler) -> bool:
        key = fault, handler
        if key in self._named:
            return False
        self._named.add(key)
        return True


class _Thread:
    """The one thread that checks all watchdogs of the process, as long as there are some."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchdogs: dict[Watchdog, None] = {}
        # Set when the running thread has to end; `None` without a thread.
        self._over: threading.Event | None = None

    def add(self, watchdog: Watchdog) -> None:
        """Check this watchdog from now on."""
        with self._lock:
            self._watchdogs[watchdog] = None
            if self._over is None:
                self._over = threading.Event()
                args = (self._over,)
                threading.Thread(target=self._watch, args=args, name="agent_hooks watchdog", daemon=True).start()

    def remove(self, *watchdogs: Watchdog) -> None:
        """Check these watchdogs no longer; end the thread if there is no other one."""
        with self._lock:
            for each in watchdogs:
                self._watchdogs.pop(each, None)
            if not self._watchdogs and self._over is not None:
                self._over.set()
                self._over = None

    def forget(self) -> None:
        """Forget the thread and the watchdogs of the parent, in a forked process, which has neither thread nor loop."""
        self.__init__()  # type: ignore[misc]  # the lock may be held by a thread that is not here

    def _watch(self, over: threading.Event) -> None:
        last = monotonic()
        while not over.wait(INTERVAL):
            now = monotonic()
            with self._lock:
                watchdogs = tuple(self._watchdogs)
            # A machine that slept did not compute, so a long gap does not count as own time.
            self.remove(*_check(watchdogs, now, min(now - last, 2 * INTERVAL)))
            last = now


def _check(watchdogs: Iterable[Watchdog], now: float, passed: float) -> list[Watchdog]:
    """Check all watchdogs, and return those whose event loop is closed."""
    frames = sys._current_frames()
    found = {loop: _dispatch_in(frames.get(loop)) for loop in {each.loop for each in watchdogs}}
    # The thread must not keep the frames, and the values in them, until the next check.
    del frames
    gone = []
    for each in watchdogs:
        running, inside = found[each.loop]
        is_running = running is not None and running.owner is each.owner
        if (is_running or each.needs_check) and not each.check(
            now, passed, running if is_running else None, inside if is_running else []
        ):
            gone.append(each)
    return gone


def _dispatch_in(frame: FrameType | None) -> tuple[Dispatch | None, list[FrameType]]:
    """Return the innermost dispatch whose handler runs in a stack, and the frames inside of it."""
    inside: list[FrameType] = []
    while frame is not None and frame.f_code is not _CODE:
        inside.append(frame)
        frame = frame.f_back
    return (None, []) if frame is None else (frame.f_locals["self"], inside)


_thread = _Thread()
os.register_at_fork(after_in_child=_thread.forget)
