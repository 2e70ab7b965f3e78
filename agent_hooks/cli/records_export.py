"""`agent-hooks records export`: send recorded calls to an OTLP endpoint."""

from __future__ import annotations

import os
import time

import click

from agent_hooks.cli.recorded import find_session, opened
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.streams import echo
from agent_hooks.errors import count
from agent_hooks.records.files import files_of, record_files
from agent_hooks.settings import OtlpSettings, agent_home, endpoint_problem, merge_settings
from agent_hooks.trees import SourceTree

_DAY = 24 * 60 * 60


@click.command("export")
@click.option("--otlp", "url", metavar="URL", help="The base URL of the endpoint; by default that of your settings.")
@click.option("--session", metavar="ID", help="Only this session; the beginning of its id is enough.")
@click.option("--days", type=click.FloatRange(min=0), help="Only files that were written to in the last DAYS.")
@click.option("--inputs", is_flag=True, help="Export inputs, reasons, prompts and all other texts too, redacted.")
def export_command(url: str | None, session: str | None, days: float | None, inputs: bool) -> None:
    """Send the records to an OTLP endpoint: a trace for each session, a span for each tool call, a log for each line.

    A record that is sent twice is the same span. The headers of your settings go to the endpoint of your settings only.
    """
    # Imported here, because the other commands do not need it.
    from agent_hooks.records.exporting import export_files, make_exporter

    settings = _endpoint(url, inputs)
    exporter = make_exporter(settings)
    reader = opened()
    files = (
        record_files(reader.directory) if session is None else files_of(reader.directory, find_session(reader, session))
    )
    if days is not None:
        since = time.time() - days * _DAY
        files = [path for path in files if os.stat(path).st_mtime >= since]
    with working(f"exporting {count(len(files), 'file')}"):
        done = export_files(reader.directory, files, exporter, endpoint=settings.endpoint, inputs=settings.inputs)
    sent = f"{count(done.lines, 'record')} of {count(done.files, 'file')}, {count(done.spans, 'span')}"
    echo(f"exported {sent} to {settings.endpoint}")


def _endpoint(url: str | None, inputs: bool) -> OtlpSettings:
    """Return the endpoint that the person names, or that of the person's settings; raises `click.UsageError`."""
    own = merge_settings([SourceTree(agent_home())]).records.otlp
    if url is None:
        if own is None:
            raise click.UsageError(
                "no endpoint: give --otlp URL, or set 'records.otlp.endpoint' in your settings, "
                f"{os.path.join(agent_home(), 'settings.json')}"
            )
        return OtlpSettings(endpoint=own.endpoint, inputs=inputs or own.inputs, headers=own.headers)
    if problem := endpoint_problem(url):
        raise click.UsageError(f"--otlp: {problem}")
    headers = own.headers if own is not None and own.endpoint.rstrip("/") == url.rstrip("/") else {}
    return OtlpSettings(endpoint=url, inputs=inputs, headers=headers)
