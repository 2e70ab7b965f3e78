"""Exports records to an OTLP endpoint: live, while they are written, and from files.

Live, each line that was written goes into a queue of limited size, and a thread sends the lines in batches.  A call never
waits for it: a line that finds the queue full is not exported, and it stays in its file.  The first problem is reported
once, and at the end the number of lines that were not exported.

The SDK is the extra `otel`; it is imported by the thread that exports.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_hooks.errors import AgentHooksError, count, describe
from agent_hooks.records.files import INDEX, files_of, parse_name
from agent_hooks.records.lines import Tombstone
from agent_hooks.records.otlp import Joiner, head_log
from agent_hooks.records.otlp_values import Log, Span, time_of
from agent_hooks.records.reading import decode_line, name_of_session, raw_lines, read_index
from agent_hooks.settings import OtlpSettings
from agent_hooks.storage.digests import sha256

if TYPE_CHECKING:
    from agent_hooks.records.otlp_exporter import Exporter

INSTALL = "the extra `otel` is not installed: pip install 'agent-hooks-runtime[otel]'"
QUEUE_LINES = 10_000
QUEUE_BYTES = 16 << 20
"""Lines, and their bytes, that wait to be exported; further lines are not exported."""
INTERVAL = 1.0
"""Seconds that the first line of a batch waits for more."""
PATIENCE = 2.0
"""Seconds that the end of a process waits for the last batch."""
_LONGEST_PAUSE = 60.0
# Lines of one batch, so that a queue that filled up does not become a single request.
_LINES = 512


class ExportError(AgentHooksError):
    """Records cannot be exported; the text names the endpoint and the reason."""


def is_installed() -> bool:
    """Tell whether the extra `otel` is installed, without importing it."""
    try:
        names = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
        return all(find_spec(name) is not None for name in names)
    except ModuleNotFoundError:
        return False


def make_exporter(settings: OtlpSettings) -> Exporter:
    """Return the exporter to an endpoint; raises `ExportError` when it cannot be made."""
    if not is_installed():
        raise ExportError(INSTALL)
    try:
        # Imported here, because it loads the SDK.
        from agent_hooks.records.otlp_exporter import Exporter

        return Exporter(settings.endpoint, settings.headers)
    except Exception as exc:
        # Another version of the SDK, or a damaged one, may raise anything; the records stay in their files.
        raise ExportError(f"the SDK of OpenTelemetry does not work: {describe(exc)}") from exc


# ---- live


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
        """Send what is queued, and wait for that at most `patience` seconds; 0 leaves it to the thread."""
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
        except Exception as exc:
            # A line that this version cannot map; the export ends, and the records stay in their files.
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
            logs = _logs(joiner, batch)
            if problem := exporter.send(joiner.finished(), logs):
                self._fail(problem)
                with self._lock:
                    self._lost += len(batch)
                return False
        return True

    def _next(self) -> list[tuple[str, bytes]]:
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), _LINES))]
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
        """Report what was not exported, once."""
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


def _logs(joiner: Joiner, batch: Iterable[tuple[str, bytes]]) -> list[Log]:
    """Return the logs of a batch of lines, and the head of each file behind them; the joiner gets the lines."""
    logs: list[Log] = []
    heads: dict[str, Log] = {}
    for file, data in batch:
        if (line := decode_line(data)) is not None:
            digest = sha256(data.removesuffix(b"\n"))
            logs.append(joiner.add(line, file, digest))
            heads[file] = head_log(line.session, file, line.n, digest, time_of(line))
    return [*logs, *heads.values()]


# ---- from files


class Exported(Struct, frozen=True):
    """The number of files, lines and spans that were exported."""

    files: int = 0
    lines: int = 0
    spans: int = 0


def export_files(
    directory: str, files: Iterable[str], exporter: Exporter, *, endpoint: str, inputs: bool = False
) -> Exported:
    """Export record files, the calls of a session joined over its files.

    `directory`: of the records, for the tombstones in its index; `files`: paths.  Raises `ExportError` at the first
    batch that cannot be sent, and `StorageError` for a file that cannot be read.
    """
    sessions: dict[str, list[str]] = {}
    for path in files:
        sessions.setdefault(name_of_session(path), []).append(path)
    sent_lines = sent_spans = 0

    def send(logs: list[Log], spans: list[Span], lines: int) -> None:
        nonlocal sent_lines, sent_spans
        if problem := exporter.send(spans, logs):
            done = f"{count(sent_lines, 'record')} had been sent" if sent_lines else "nothing was sent"
            raise ExportError(f"{endpoint}: {problem}; {done}")
        sent_lines, sent_spans = sent_lines + lines, sent_spans + len(spans)

    for paths in sessions.values():
        joiner = Joiner(inputs=inputs)
        for path in paths:
            name = os.path.basename(path)
            lines = ((name, data) for _, data in raw_lines(path) if data.endswith(b"\n"))
            while batch := list(islice(lines, _LINES)):
                send(_logs(joiner, batch), [], len(batch))
        # A later file may hold the other half of a call, so the spans are made at the end.
        send([], joiner.rest(), 0)
    tombstones = [line for line in read_index(directory) if isinstance(line, Tombstone)]
    if tombstones:
        joiner = Joiner(inputs=inputs)
        send([joiner.add(line, INDEX) for line in tombstones], [], 0)
    return Exported(sum(map(len, sessions.values())), sent_lines, sent_spans)
