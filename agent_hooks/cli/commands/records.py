"""`agent-hooks records`: the recorded calls as a table or as JSON, one of them in full, and the care of the files."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterator

import click

from agent_hooks.cli.common import WholeHelpGroup
from agent_hooks.cli.completing import hook_names, tool_names
from agent_hooks.cli.lifetime import FAILED
from agent_hooks.cli.options import json_option
from agent_hooks.cli.reports.ladder import print_ladder
from agent_hooks.cli.reports.recorded import (
    ROWS,
    RecordsTable,
    find,
    find_session,
    json_line,
    moment,
    opened,
    shown,
    unread_lines,
)
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.streams import echo, echo_json, tell
from agent_hooks.errors import AgentHooksError, count
from agent_hooks.records.files import files_of, record_files
from agent_hooks.records.joining import CHANGED, VERDICTS, Wanted
from agent_hooks.records.lines import Removed
from agent_hooks.settings import OtlpSettings, agent_home, endpoint_problem, merge_settings
from agent_hooks.storage.files import open_regular
from agent_hooks.trees import SourceTree
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.ui.harmless import harmless

_DAY = 24 * 60 * 60  # seconds
_OPEN_TO_AGENTS = ("verify", "head")
"""The subcommands that show no content of a record and remove none."""


_OTHERWISE = (
    "one record: agent-hooks records show WORD; calls of a tool or a hook: agent-hooks records --tool WORD, or --hook "
    "WORD; agent-hooks look searches words"
)


@click.group("records", cls=WholeHelpGroup, invoke_without_command=True, otherwise=_OTHERWISE)
@click.option("--since", metavar="TIME", help="Only those since then: 30m, 12h, 7d, 2w, or a date such as 2026-01-31.")
@click.option("--verdict", type=click.Choice([*VERDICTS, CHANGED]), help="Only those with this verdict.")
@click.option(
    "--tool",
    default="",
    metavar="NAME",
    shell_complete=tool_names,
    help="Only calls of this tool; `mcp__*` is a pattern.",
)
@click.option(
    "--hook",
    default="",
    metavar="NAME",
    shell_complete=hook_names,
    help="Only those that this hook, guard or rule had an answer to.",
)
@click.option("--session", default="", metavar="ID", help="Only this session; the beginning of its id is enough.")
@click.option("--client", default="", metavar="NAME", help="Only those of this agent: agent-hooks, claude-code, …")
@click.option(
    "--last", type=click.IntRange(min=1), metavar="N", help=f"Only the newest N; a table has {ROWS} without this."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    since: str | None,
    verdict: str | None,
    tool: str,
    hook: str,
    session: str,
    client: str,
    last: int | None,
    as_json: bool,
) -> None:
    """Show the recorded tool calls, with the hooks that stopped them and the persons that said yes.

    The newest call is the last. Prompts, sessions and files have a row when a hook or a person had a part in them. With
    --json, each call is one object on a line of its own.
    """
    name = ctx.invoked_subcommand
    if name not in _OPEN_TO_AGENTS:
        refuse_below_an_agent(f"records {name}" if name else "records")
    if name is not None:
        return
    wanted = Wanted(since=moment(since), verdict=verdict or "", tool=tool, hook=hook, session=session, client=client)
    reader = opened()
    records = shown(reader.records(wanted))
    table = RecordsTable(last or ROWS)
    with working("reading the records"):
        if as_json:
            for record in records if last is None else deque(records, last):
                echo_json(json_line(record))
        else:
            for record in records:
                table.add(record)
    if not as_json:
        table.print(reader)
        return
    for line in unread_lines(reader):
        echo(line, err=True)


@command.command("export")
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


@command.command("show")
@click.argument("id", required=False)
@json_option
def show_command(id: str | None, as_json: bool) -> None:
    """Show the record with this ID, or with the only id that begins so: each step, the question, the result.

    Without ID, the newest call counts.
    """
    reader = opened()
    record = reader.newest(Wanted(), notable=False) if id is None else find(reader, id)
    if record is None:
        raise AgentHooksError("no call is recorded yet; `agent-hooks run` and other agents' hooks write records")
    if as_json:
        echo_json(json_line(record))
    else:
        print_ladder(record, reader.turn(record))


@command.command("verify")
@click.option(
    "--head", "heads", multiple=True, metavar="HEX", help="Also compare this head, kept elsewhere; repeatable."
)
@click.option(
    "--heads", "file", type=click.Path(exists=True), help="Also compare the heads that `records head` printed."
)
@click.pass_context
def verify_command(ctx: click.Context, heads: tuple[str, ...], file: str | None) -> None:
    """Check that the record files are as they were written; exit 1 and name the place where they are not."""
    # Imported here, because the other commands do not need it.
    from agent_hooks.records.verifying import Kept, verify

    kept = [Kept(_hash(head)) for head in heads]
    kept += [Kept(head, name) for head, name in _kept_in(file)] if file is not None else []
    with working("reading the records"):
        report = verify(opened().directory, kept)
    for problem in report.problems:
        echo(harmless(str(problem)))
    for note in report.notes:
        echo(harmless(f"note: {note}"))
    removed = f"; {count(report.removed, 'file')} removed by prune or forget" if report.removed else ""
    found = f"{count(len(report.problems), 'problem')}" if report.problems else "no problem"
    echo(f"{found} in {count(report.files, 'file')}, {count(report.lines, 'line')} checked{removed}")
    if report.problems:
        ctx.exit(FAILED)


def _hash(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise click.UsageError(
            f"a head has 64 hexadecimal digits, as `agent-hooks records head` prints them, not {text!r}"
        )
    return text.lower()


def _kept_in(file: str) -> Iterator[tuple[str, str]]:
    """Yield the heads and names of a file with the output of `records head`."""
    with open_regular(file, file) as opened_file:
        text = opened_file.read().decode(errors="replace")
    for line in text.splitlines():
        if words := line.split():
            yield _hash(words[0]), words[1].rpartition(":")[0] if len(words) > 1 else ""


@command.command("head")
def head_command() -> None:
    """Print the last hash of the index and of each file, to keep in a place that no agent writes: HASH FILE:LINES."""
    # Imported here, because the other commands do not need it.
    from agent_hooks.records.verifying import current_heads

    for name, lines, head in current_heads(opened().directory):
        if head:
            echo(f"{head}  {name}:{lines}")


@command.command("prune")
@click.option("--days", type=click.IntRange(min=0), help="Remove files last written more than DAYS ago.")
@click.option("--bytes", "limit", type=click.IntRange(min=0), help="Remove the oldest while all are larger.")
def prune_command(days: int | None, limit: int | None) -> None:
    """Remove old record files, by default as `records.days` and `records.bytes` of your settings say."""
    # Imported here, because the other commands do not need it.
    from agent_hooks.records.pruning import prune

    if days is None and limit is None:
        settings = merge_settings([SourceTree(agent_home())]).records
        days, limit = settings.days, settings.bytes
    _report(prune(opened().directory, math.inf if days is None else days, sys.maxsize if limit is None else limit))


@command.command("forget")
@click.argument("session")
def forget_command(session: str) -> None:
    """Remove the records of SESSION, or of the only session whose id begins so; a tombstone says that they were there."""
    # Imported here, because the other commands do not need it.
    from agent_hooks.records.pruning import forget

    reader = opened()
    _report(forget(reader.directory, find_session(reader, session)))


def _report(removed: list[Removed]) -> None:
    sessions = len({each.session for each in removed})
    lines = sum(each.lines for each in removed)
    tell(f"removed {count(len(removed), 'file')} of {count(sessions, 'session')}, {count(lines, 'line')}")
