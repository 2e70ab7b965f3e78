"""Exports record files to an OTLP endpoint, with the SDK of OpenTelemetry, which is the extra `otel`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_hooks.errors import AgentHooksError, count, describe
from agent_hooks.records.files import INDEX
from agent_hooks.records.lines import Tombstone
from agent_hooks.records.otlp import Joiner, head_log
from agent_hooks.records.otlp_values import Log, Span, time_of
from agent_hooks.records.reading import decode_line, name_of_session, raw_lines, read_index
from agent_hooks.settings import OtlpSettings
from agent_hooks.storage.digests import line_hash

if TYPE_CHECKING:
    from agent_hooks.records.otlp_exporter import Exporter

INSTALL = "the extra `otel` is not installed: pip install 'agent-hooks-runtime[otel]'"
BATCH_LINES = 512
"""Lines of one batch, so that a queue that filled up does not become a single request."""


class ExportError(AgentHooksError):
    """Records cannot be exported; the text names the endpoint and the reason."""


def is_installed() -> bool:
    """Tell whether the extra `otel` is installed, without importing it."""
    try:
        names = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
        return all(find_spec(name) is not None for name in names)
    except (ModuleNotFoundError, ValueError):
        return False


def make_exporter(settings: OtlpSettings) -> Exporter:
    """Return the exporter to an endpoint; raises `ExportError` when it cannot be made."""
    if not is_installed():
        raise ExportError(INSTALL)
    try:
        # Imported here, because it loads the SDK.
        from agent_hooks.records.otlp_exporter import Exporter

        return Exporter(settings.endpoint, settings.headers)
    # Another version of the SDK, or a damaged one, may raise anything; the records stay in their files.
    except Exception as exc:
        raise ExportError(f"the SDK of OpenTelemetry does not work: {describe(exc)}") from exc


def make_logs(joiner: Joiner, batch: Iterable[tuple[str, bytes]]) -> list[Log]:
    """Return the logs of a batch of lines, and the head of each file behind them; the joiner gets the lines."""
    logs: list[Log] = []
    heads: dict[str, Log] = {}
    for file, data in batch:
        if (line := decode_line(data)) is not None:
            digest = line_hash(data.removesuffix(b"\n"))
            logs.append(joiner.add(line, file, digest))
            heads[file] = head_log(line.session, file, line.n, digest, time_of(line))
    return [*logs, *heads.values()]


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
            while batch := list(islice(lines, BATCH_LINES)):
                send(make_logs(joiner, batch), [], len(batch))
        # A later file may hold the other half of a call, so the spans are made at the end.
        send([], joiner.rest(), 0)
    tombstones = [line for line in read_index(directory) if isinstance(line, Tombstone)]
    if tombstones:
        joiner = Joiner(inputs=inputs)
        send([joiner.add(line, INDEX) for line in tombstones], [], 0)
    return Exported(sum(map(len, sessions.values())), sent_lines, sent_spans)
