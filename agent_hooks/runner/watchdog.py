"""Name the handler that blocks the event loop, and the one that takes long.

Theory of operation.  A daemon thread looks a few times a second, so that a dispatch pays nothing.  What runs on the
loop's thread is read off its stack: the frame of `Dispatch.call_handlers` there knows the handler, the frames inside of
it file and line.  Whether the loop stands still, a callback tells that it has not called yet.  A handler's own time is
counted by looking, too: while its clock is armed and none of its dialogs is open.
Above: runner.  Below: dispatch, deadlines.
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
from agent_hooks.errors import HookError, log, place_among

LOOK = 0.25  # seconds between two looks
BLOCKED = 1.0  # seconds the loop may stand still
SLOW = 5.0  # seconds of its own time a handler may take
_CODE = Dispatch.call_handlers.__code__
_REMEDY = "nothing else of the agent runs meanwhile, and no deadline can stop it: use a plain `def`, or await something"
_TASK = "long work belongs in api.start_task(...)"


class _Stuck(Struct):
    """A handler that blocks the loop, and for how long it has been seen to."""

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
        self._loop = 0  # the thread it runs in
        self._soon: Callable[[Callable[[], object]], object] = lambda callback: None
        self._turned = True  # whether the loop has run what it was last given
        self._running: Dispatch | None = None  # what was seen on the loop's stack
        self._handler: Handler | None = None
        self._since = 0.0  # when it was first seen there, without a turn of the loop ever since
        self._stuck: list[_Stuck] = []  # to be reported when the loop is back
        self._own: dict[Clock, tuple[float, float]] = {}  # when the handler suspended, and its own seconds so far
        self._named: set[tuple[str, Handler]] = set()

    def start(self) -> None:
        """Begin, on the event loop that is to be watched; where none runs, there is none to block."""
        self._loop = threading.get_ident()
        if (soon := call_soon()) is None:
            return
        self._soon = soon
        threading.Thread(target=self._watch, name="agent_hooks watchdog", daemon=True).start()

    def stop(self) -> None:
        """End; what is known by then is not reported any more."""
        self._over.set()

    def _watch(self) -> None:
        last = monotonic()
        while not self._over.wait(LOOK):
            now = monotonic()
            try:
                self._look_at_the_stack(now)
                self._look_at_the_clocks(min(now - last, 2 * LOOK))  # a machine that slept did not compute
            except RuntimeError:  # the event loop is closed
                return
            last = now

    # ---- blocking

    def _look_at_the_stack(self, now: float) -> None:
        frame: FrameType | None = sys._current_frames().get(self._loop)
        inside: list[FrameType] = []
        while frame is not None and frame.f_code is not _CODE:
            inside.append(frame)
            frame = frame.f_back
        running: Dispatch | None = None if frame is None else frame.f_locals["self"]
        handler: Handler | None = getattr(running, "handler", None)  # none before the first one's turn
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
        """Say at once, on this thread, who blocks the loop; a report has to wait for it."""
        stack = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames)
        places = [(frame.filename, frame.lineno or 0) for frame in stack]
        where = f"{stack[-1].name} at {stack[-1].filename}:{stack[-1].lineno}" if stack else handler.name
        error = _error(running, handler, seconds, f"blocks the event loop, in {where}; {_REMEDY}", *place_among(places))
        error = replace(error, traceback="".join(stack.format()))
        self._stuck.append(_Stuck(handler, error, where, seconds))
        log().warning("%s", error)

    def _turn(self) -> None:
        """Note, on the event loop, that it turns, and report who had kept it from that."""
        self._turned = True
        while self._stuck:
            each = self._stuck.pop(0)
            text = f"blocked the event loop for {each.seconds:.1f} s, in {each.where}; {_REMEDY}"
            self._tell(replace(each.error, error=text, elapsed=each.seconds))

    def _tell(self, error: HookError) -> None:
        if not self._over.is_set():
            self._report(error)

    # ---- taking long

    def _look_at_the_clocks(self, passed: float) -> None:
        own: dict[Clock, tuple[float, float]] = {}
        for clock in self._suspended.copy():
            dispatch: Dispatch | None = clock.dispatch
            handler: Handler | None = None if dispatch is None else dispatch.handler
            if not clock.armed or dispatch is None or handler is None:
                continue
            started, seconds = self._own.get(clock, (clock.started, 0.0))
            if started != clock.started:  # another handler of that dispatch by now
                seconds = 0.0
            elif not clock.dialogs:
                seconds += passed
            own[clock] = clock.started, seconds
            if seconds >= SLOW and self._first("slow", handler):
                text = f"takes long, {SLOW:g} s of its own time so far, and what comes after it waits; {_TASK}"
                self._soon(partial(self._tell, _error(dispatch, handler, seconds, text, handler.file, handler.line)))
        self._own = own

    def _first(self, fault: str, handler: Handler) -> bool:
        key = fault, handler
        if key in self._named:
            return False
        self._named.add(key)
        return True


def _error(
    dispatch: Dispatch, handler: Handler, seconds: float, text: str, file: str | None, line: int | None
) -> HookError:
    return HookError(
        hook_path=handler.hook,
        handler=handler.name,
        event=handler.event,
        reason=getattr(dispatch.event, "reason", None),
        error=text,
        file=file,
        line=line,
        elapsed=seconds,
        outcome="continued",
    )
