"""Name the handler that blocks the event loop, and the handler that takes long.

How the watchdog works.

 1. A daemon thread wakes four times a second, so that a dispatch pays nothing for it.
 2. It reads the stack of the event loop's thread.  The frame of `Dispatch.call_handlers` there knows the running handler,
    and the frames inside of it give file and line.
 3. To tell whether the loop is blocked, the thread posts a callback and checks whether it has run.
 4. It adds up the own time of each suspended handler: the time while its clock is armed and none of its dialogs is open.
 5. It names each handler once for either fault, and it stops none: a thread cannot stop the code that blocks a loop.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from time import monotonic
from types import FrameType

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.concurrency.deadlines import Clock, call_soon
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.loop import Dispatch
from agent_hooks.errors import HookError, hook_error, log, place_among

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
        self._over = threading.Event()
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
        threading.Thread(target=self._watch, name="agent_hooks watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop; faults found by then are not reported any more."""
        self._over.set()

    def _watch(self) -> None:
        last = monotonic()
        while not self._over.wait(INTERVAL):
            now = monotonic()
            try:
                self._check_loop(now)
                # A machine that slept did not compute, so a long gap does not count as own time.
                self._check_clocks(min(now - last, 2 * INTERVAL))
            except RuntimeError:
                # The event loop is closed, so there is nothing left to watch.
                return
            last = now

    # ---- blocking

    def _check_loop(self, now: float) -> None:
        frame: FrameType | None = sys._current_frames().get(self._loop)
        inside: list[FrameType] = []
        while frame is not None and frame.f_code is not _CODE:
            inside.append(frame)
            frame = frame.f_back
        running: Dispatch | None = None if frame is None else frame.f_locals["self"]
        # A dispatch has no handler yet before the first one is called.
        handler: Handler | None = getattr(running, "handler", None)
        last = self._stuck[-1:]
        if running is None or handler is None or handler.threaded or running.owner is not self._owner:
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
        error = _error(running, handler, seconds, f"blocks the event loop, in {where}; {_REMEDY}", place_among(places))
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
        if not self._over.is_set():
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
                error = _error(dispatch, handler, seconds, text, (handler.file, handler.line))
                self._soon(partial(self._report_later, error))
        self._own = own

    def _first(self, fault: str, handler: Handler) -> bool:
        key = fault, handler
        if key in self._named:
            return False
        self._named.add(key)
        return True


def _error(
    dispatch: Dispatch, handler: Handler, seconds: float, text: str, place: tuple[str | None, int | None]
) -> HookError:
    return hook_error(
        None,
        hook=handler.hook,
        handler=handler.name,
        event=handler.event,
        outcome="continued",
        error=text,
        reason=getattr(dispatch.event, "reason", None),
        elapsed=seconds,
        place=place,
    )
