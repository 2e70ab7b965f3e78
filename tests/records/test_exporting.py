"""Record files are sent to a real endpoint in batches: the calls of a session as a whole, then the tombstones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_hooks import HookContext, ToolCall
from agent_hooks.records import exporting
from agent_hooks.records.exporting import Exported, ExportError, export_files, is_installed, make_exporter
from agent_hooks.records.files import record_files
from agent_hooks.records.pruning import forget
from agent_hooks.settings import OtlpSettings
from agent_hooks.testing import StandInTool, call_tool
from otlp_endpoint import Endpoint, body, otlp_endpoint, plain
from recording import Recorded
from support import hook_on

pytestmark = pytest.mark.anyio
TOOL = StandInTool("bash", "done")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Give an endpoint that takes everything."""
    with otlp_endpoint() as started:
        yield started


def silent(event: ToolCall, ctx: HookContext) -> None:
    """Have no objection."""


async def calls(recorded: Recorded, session: str, *commands: str) -> None:
    """Record calls in a file of their own."""
    runner = recorded.runner(hook_on("tool_call", silent), session_id=session)
    for command in commands:
        await call_tool(runner, "bash", {"command": command}, TOOL)
    runner.end_records()


def export(recorded: Recorded, endpoint: Endpoint) -> Exported:
    """Export all record files."""
    exporter = make_exporter(OtlpSettings(endpoint=endpoint.url))
    directory = str(recorded.directory)
    return export_files(directory, record_files(directory), exporter, endpoint=endpoint.url)


async def test_all_files_are_sent_in_batches_with_the_head_of_each(
    recorded: Recorded, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of files, records and spans is that of the endpoint; a line that is none, or has no end, is left out."""
    monkeypatch.setattr(exporting, "BATCH_LINES", 3)
    await calls(recorded, "s1", "ls", "date")
    await calls(recorded, "s2", "pwd")
    written = {Path(path).name: Path(path).read_bytes() for path in record_files(str(recorded.directory))}
    with next(recorded.directory.glob("s1.*")).open("ab") as file:
        file.write(b'no line\n{"kind":"decis')
    done = export(recorded, endpoint)
    lines = sum(len(data.splitlines()) for data in written.values())
    # The line that is none was read as one of a batch.
    assert (done.files, done.lines, done.spans) == (2, lines + 1, len(endpoint.spans))
    assert len([span for span in endpoint.spans if span.name == "execute_tool bash"]) == 3
    sent = [log for log in endpoint.logs if log.event_name != "agent_hooks.head"]
    assert len(sent) == lines
    heads = {plain(log.attributes)["agent_hooks.record.file"] for log in endpoint.named("agent_hooks.head")}
    assert heads == set(written)


async def test_a_session_that_was_forgotten_is_sent_as_its_tombstone(recorded: Recorded, endpoint: Endpoint) -> None:
    """The endpoint learns which file is gone, and that a person forgot it."""
    await calls(recorded, "s1", "ls")
    await calls(recorded, "s2", "pwd")
    (gone,) = forget(str(recorded.directory), "s1")
    done = export(recorded, endpoint)
    assert done.files == 1
    (log,) = endpoint.named("agent_hooks.tombstone")
    tombstone = body(log)
    assert (tombstone["why"], [each["file"] for each in tombstone["files"]]) == ("forget", [gone.file])


async def test_the_first_batch_that_is_refused_ends_the_export_with_the_number_that_was_sent(
    recorded: Recorded, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the endpoint, its answer, and the records that it had taken by then."""
    monkeypatch.setattr(exporting, "BATCH_LINES", 2)
    await calls(recorded, "s1", "ls", "date", "pwd")
    endpoint.status = 401
    with pytest.raises(ExportError, match=rf"{endpoint.url}: it answered 401 .*; nothing was sent"):
        export(recorded, endpoint)
    endpoint.status = 200
    take = endpoint.take

    def take_two(path: str, headers: dict[str, str], data: bytes) -> None:
        take(path, headers, data)
        endpoint.status = 200 if len(endpoint.bodies) < 3 else 400

    monkeypatch.setattr(endpoint, "take", take_two)
    with pytest.raises(ExportError, match=r"it answered 400 .*; 2 records had been sent"):
        export(recorded, endpoint)


def test_without_the_sdk_the_error_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is looked for, and not imported."""
    assert is_installed()
    for gone in ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        with monkeypatch.context() as patch:
            for name in [name for name in sys.modules if name.startswith(gone)]:
                patch.delitem(sys.modules, name)
            patch.setitem(sys.modules, gone, None)
            assert not is_installed()
            with pytest.raises(ExportError, match=r"pip install 'agent-hooks-runtime\[otel\]'"):
                make_exporter(OtlpSettings(endpoint="http://127.0.0.1:1"))


def test_an_sdk_that_cannot_be_imported_is_an_error_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of it may lack a module."""
    monkeypatch.delitem(sys.modules, "agent_hooks.records.otlp_exporter", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk._logs", None)
    with pytest.raises(ExportError, match=r"the SDK of OpenTelemetry does not work: .*opentelemetry\.sdk\._logs"):
        make_exporter(OtlpSettings(endpoint="http://127.0.0.1:1"))
