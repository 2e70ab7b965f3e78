"""Exports records to an OTLP endpoint while they are written.

Each line that was written goes into a queue of limited size, and a thread sends the lines in batches.  A call never waits
for it: a line that finds the queue full is not exported, and it stays in its file.  The first problem is reported once,
and at the end the number of lines that were not exported.  The thread imports the SDK.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_hooks.errors import count, describe
from agent_hooks.records.exporting import BATCH_LINES, INSTALL, ExportError, is_installed, make_exporter, make_logs
from agent_hooks.records.files import files_of, parse_name
from agent_hooks.records.otlp import Joiner
from agent_hooks.settings import OtlpSettings

if TYPE_CHECKING:
    from agent_hooks.records.otlp_exporter import Exporter

QUEUE_LINES = 10_000
QUEUE_BYTES = 16 << 20
"""Lines, and their bytes, that wait to be exported; further lines are not exported."""
INTERVAL = 1.0
"""Seconds that the first line of a batch waits for more."""
PATIENCE = 2.0
"""Seconds that the end of a process waits for the last batch."""
_LONGEST_PAUSE = 60.0


class LiveExport:
    """Exports lines while they are written: `export.take` is the tap of the writers.

    `directory`: of the records; `report`: gets the sentence about the first problem, and about lost lines, in the thread
    that takes lines or closes, or in the export's own.
    """

    def __init__(self, settings: OtlpSettings, directory: str, report: Callable[[str], object]) -> None:
        self._settings = settings
        self._directory = directory
        self._report = report
        self._is_reported = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._queue: deque[tuple[str, bytes]] = deque()
        self._waiting = 0
        self._some = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_awaited = False
        self._problem = ""
        self._lost = 0

    def take(self, file: str, data: bytes) -> None:
        """Queue a line for the export; `file`: the name of its file.  Never waits, never raises."""
        if self._pid != os.getpid():
            # A child of a fork has no thread.
            self._begin()
        with self._lock:
            if len(self._queue) >= QUEUE_LINES or self._waiting + len(data) > QUEUE_BYTES:
                self._lost += 1
                return
            self._queue.append((file, data))
            self._waiting += len(data)
            if self._thread is None:
                self._start()
        if not self._some.is_set():
            self._some.set()
        if self._problem and not self._is_reported:
            self._is_reported = True
            self._report(f"records are not exported to {self._settings.endpoint}: {self._problem}")

    def _start(self) -> None:
        self._thread = _NO_THREAD
        if not is_installed():
            self._fail(INSTALL)
            return
        thread = threading.Thread(target=self._work, name="agent_hooks export", daemon=True)
        try:
            thread.start()
        except RuntimeError as exc:
            # The system has no thread left.
            self._fail(str(exc))
            return
        self._thread = thread
        _living.add(self)

    def close(self, patience: float = PATIENCE) -> None:
        """Send the queued lines, and wait for that at most `patience` seconds; with 0, the thread sends them later."""
        thread = self._thread
        if thread is None or self._pid != os.getpid():
            return
        self._is_awaited = patience > 0
        self._closing.set()
        self._some.set()
        if thread.is_alive() and patience > 0:
            thread.join(patience)
        if self._is_awaited or not thread.is_alive():
            self._end()

    # ---- the thread

    def _work(self) -> None:
        try:
            self._export()
        # A line that this version cannot map; the export ends, and the records stay in their files.
        except Exception as exc:
            self._fail(describe(exc))
        if self._closing.is_set() and not self._is_awaited:
            self._end()

    def _export(self) -> None:
        try:
            exporter = make_exporter(self._settings)
        except ExportError as exc:
            self._fail(str(exc))
            return
        joiner = Joiner(inputs=self._settings.inputs, started=self._started)
        pause = INTERVAL
        while not self._closing.is_set():
            self._some.wait()
            self._closing.wait(pause)
            pause = INTERVAL if self._send_queue(exporter, joiner) else min(pause * 2, _LONGEST_PAUSE)
        # Lines may have come during the last sending.
        if pause == INTERVAL and self._send_queue(exporter, joiner) and (problem := exporter.send(joiner.rest(), [])):
            self._fail(problem)

    def _send_queue(self, exporter: Exporter, joiner: Joiner) -> bool:
        """Send all lines that are queued; return whether that succeeded."""
        while batch := self._next():
            logs = make_logs(joiner, batch)
            if problem := exporter.send(joiner.finished(), logs):
                self._fail(problem)
                with self._lock:
                    self._lost += len(batch)
                return False
        return True

    def _next(self) -> list[tuple[str, bytes]]:
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_LINES))]
            self._waiting -= sum(len(data) for _, data in batch)
            if not self._queue:
                self._some.clear()
        return batch

    def _started(self, session: str) -> int | None:
        """Return the time at which the first process of a session began to write, in nanoseconds since 1970."""
        names = [os.path.basename(path) for path in files_of(self._directory, session)]
        starts = [parsed[2] * 1_000_000 for name in names if (parsed := parse_name(name)) is not None]
        return min(starts, default=None)

    # ---- problems

    def _fail(self, reason: str) -> None:
        if not self._problem:
            self._problem = reason

    def _end(self) -> None:
        """Report the number of lines that were not exported, once."""
        with self._lock:
            lost, self._lost = self._lost + len(self._queue), 0
            self._queue.clear()
            self._waiting = 0
        _living.discard(self)
        if lost:
            reason = self._problem or "it did not answer in time"
            text = f"{count(lost, 'record')} not exported to {self._settings.endpoint}: {reason}"
            self._report(f"{text}; `agent-hooks records export` sends them from their files")


# In the place of the thread of an export that cannot work.
_NO_THREAD = threading.Thread()
_living: set[LiveExport] = set()


@atexit.register
def _flush() -> None:
    """Wait for the last batches of all exports, together at most `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    for export in list(_living):
        export.close(max(deadline - time.monotonic(), 0.01))
