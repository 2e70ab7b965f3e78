"""`agent-hooks replay`: recorded sessions, taken through today's hooks; what would have been blocked, asked or rewritten.

No tool runs, nothing is changed; see docs/replay.md for what hooks themselves may do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

import anyio
import click
import msgspec
from msgspec.structs import replace
from rich.table import Table
from rich.text import Text

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.driver import in_our_words, wrong_matchers
from agent_hooks.cli.main import FAILED
from agent_hooks.cli.options import cwd_option, hook_option, json_option
from agent_hooks.cli.setup import Setup, agent_guards, console, count, set_up, short, unused_hooks
from agent_hooks.cli.stderr import complain
from agent_hooks.cli.stdout import ReservedStdout
from agent_hooks.errors import AgentHooksError, HookError
from agent_hooks.guards import BUILTIN
from agent_hooks.guards.base import remedy
from agent_hooks.guards.config import expired, read_sections
from agent_hooks.host.tools import builtin_tools
from agent_hooks.redaction import Redactor
from agent_hooks.runner.runner import HookRunner
from agent_hooks.transcripts import Transcript, find_transcripts
from agent_hooks.transcripts.base import Reader, TranscriptError
from agent_hooks.transcripts.replaying import VERDICTS, Answered, Decision, Gates, Replay, ReplayUI, Tally
from agent_hooks.ui.harmless import harmless
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import call_line
from agent_hooks.values.wire import to_json

ROWS = 100  # lines of the table; more are counted
_SHOWN = 20  # lines that could not be read and are shown; more are counted


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, metavar="TRANSCRIPT...", type=click.Path(exists=True))
@hook_option
@cwd_option
@json_option
@click.option(
    "--fail-on",
    type=click.Choice(VERDICTS),
    help="Exit 1 when a call got this verdict or a worse one; block is the worst, rewrite the mildest.",
)
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    hook_files: tuple[str, ...],
    cwd: str,
    as_json: bool,
    fail_on: Decision | None,
) -> None:
    """Show what your hooks, guards and transformers would have done about the calls of recorded sessions.

    A TRANSCRIPT is one of Claude Code (~/.claude/projects/**/*.jsonl), a session of agent-hooks
    (.agent/sessions/*.jsonl), or a directory: all *.jsonl below it. No tool is run. The hooks and settings are those
    of --cwd.
    """
    with ReservedStdout() as stdout:
        shown: _Lines | _Rows = _Lines(stdout.write) if as_json else _Rows()
        replaying = _Replaying(paths, hook_files, os.path.abspath(cwd), shown)
        tally = anyio.run(replaying.run)
        shown.end(tally)
        broken = stdout.broken
    if isinstance(shown, _Rows):
        shown.print(tally)
    if broken is not None:
        raise AgentHooksError(f"the answer could not be written: {broken}")
    counts = {"block": tally.blocked, "ask": tally.asked, "rewrite": tally.rewritten}
    found = fail_on is not None and any(counts[each] for each in VERDICTS[: VERDICTS.index(fail_on) + 1])
    ctx.exit(FAILED if found else 0)


class _Replaying:
    """One run of the command: loads what judges, opens what was recorded, and says what is wrong with either."""

    def __init__(self, paths: tuple[str, ...], hook_files: tuple[str, ...], cwd: str, shown: _Lines | _Rows) -> None:
        self._paths = paths
        self._hook_files = hook_files
        self._cwd = cwd
        self._shown = shown
        self._setup: Setup | None = None  # for the next session
        self._unread = 0
        self._told: set[object] = set()
        self._replay = Replay(self._open_gates, shown.add, self._bad_line)

    async def run(self) -> Tally:
        """Replay all transcripts; raises `AgentHooksError`, also when a hook cannot be loaded."""
        files = list(find_transcripts(self._paths))
        if not files:
            raise click.UsageError(f"there is no *.jsonl below {', '.join(self._paths)}")
        for path, named in files:
            if named and os.path.isfile(path):  # what is no file, a pipe say, can be read only once
                _open(path).close()
        self._setup = await self._load()
        self._shown.redactor = self._setup.redactor
        if warning := unused_hooks(self._cwd):
            complain(warning)
        for sentence in expired(read_sections(self._setup.settings.guards, tuple(BUILTIN)), date.today()):
            complain(sentence)
        tally = await self._replay.run(self._transcripts(files))
        if self._unread > _SHOWN:
            complain(f"{count(self._unread - _SHOWN, 'more line')} not read")
        return tally

    def _transcripts(self, files: list[tuple[str, bool]]) -> Iterator[Transcript]:
        for path, named in files:
            try:
                yield Transcript(path)
            except TranscriptError as exc:
                if named:
                    raise click.UsageError(str(exc)) from None
                self._replay.tally.skipped += 1
                complain(harmless(f"skipped: {exc}"))

    async def _load(self) -> Setup:
        setup = await set_up(self._cwd, self._hook_files)
        if setup.errors:
            raise AgentHooksError(
                "\n".join([f"not loaded: {error}" for error in setup.errors] + ["nothing was replayed"])
            )
        return setup

    async def _open_gates(self, reader: Reader) -> Gates:
        """Load the hooks for another session, as the agent that recorded it would."""
        setup, self._setup = self._setup or await self._load(), None
        transformers = setup.transformers.configured
        schemas: dict[str, Mapping[str, Any]] = {}
        if reader.name in BRIDGES:  # the schemas of its tools are not known
            transformers, _ = in_our_words(open_bridge(reader.name), transformers)
        else:
            tools = [*builtin_tools(cwd=setup.cwd), *(tool for hook in setup.loaded.hooks for tool in hook.tools)]
            schemas = {tool.name: tool.input_schema for tool in tools}
        runner = HookRunner(
            setup.loaded,
            cwd=setup.cwd,
            timeout=setup.settings.hook_timeout,
            tool_call_timeout=setup.settings.tool_call_timeout,
            ui=ReplayUI(),
            mode="replay",
            guards=agent_guards(read_sections(setup.settings.guards, tuple(BUILTIN)), setup.cwd, setup.hook_files),
            transformers=transformers,
        )
        runner.on_error(self._hook_error)
        for warning in wrong_matchers(runner, reader.tools):
            self._once(warning, warning)
        return Gates(runner, schemas)

    def _hook_error(self, error: HookError) -> None:
        """Tell a failure once, not for each of a thousand calls."""
        what = (error.hook_path, error.handler, error.event, error.line, error.exception and type(error.exception))
        file, line = self._replay.place
        shown = replace(error, hook_path=short(error.hook_path), file=error.file and short(error.file))
        self._once(what, f"hook error at {short(file)}:{line}, told once: {shown} ({error.outcome})")

    def _once(self, what: object, text: str) -> None:
        if what not in self._told:
            self._told.add(what)
            complain(harmless(text))

    def _bad_line(self, file: str, line: int, error: str) -> None:
        self._unread += 1
        if self._unread <= _SHOWN:
            complain(harmless(f"{short(file)}:{line}: {error}; the rest of the file is replayed"))


def _open(path: str) -> Transcript:
    try:
        return Transcript(path)
    except TranscriptError as exc:
        raise click.UsageError(str(exc)) from None


class _Shown:
    """Shows what was answered; secrets are hidden in it, as they are in results."""

    redactor: Redactor | None = None

    def _safe(self, why: str, inputs: Any) -> tuple[str, Any]:
        if self.redactor is None:
            return why, inputs
        hidden, _ = self.redactor.output(ToolOutput(why, inputs))
        return hidden.text, hidden.details


class _Lines(_Shown):
    """One JSON object a line, as soon as it is known."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def add(self, answered: Answered) -> None:
        """Print an answer."""
        call = answered.call
        why, (given, rewritten) = self._safe(answered.why, [call.input, answered.rewritten])
        fields = {
            "type": "answer",
            "verdict": answered.verdict,
            "by": answered.by,
            "why": why,
            "tool": call.tool_name,
            "input": given,
            "rewritten": rewritten,
            "rewrittenBy": answered.rewritten_by or None,
            "then": answered.then,
            "file": answered.file,
            "line": answered.line,
            "time": call.time,
            "sessionId": call.session_id,
            "agentId": call.agent_id,
            "toolCallId": call.tool_call_id,
            "cwd": call.cwd,
        }
        self._write(to_json({key: value for key, value in fields.items() if value is not None}).decode() + "\n")

    def end(self, tally: Tally) -> None:
        """Print the summary."""
        self._write(to_json({"type": "summary", **msgspec.structs.asdict(tally)}).decode() + "\n")


class _Row(NamedTuple):
    """What makes calls one row of the table: the same answer to the same call."""

    verdict: Decision
    call: str
    why: str


class _Rows(_Shown):
    """A table for a person: a row for each different call, the worst and then the most frequent first."""

    def __init__(self) -> None:
        self._rows: dict[_Row, tuple[str, dict[str, int]]] = {}  # where it was first → then, how many

    def add(self, answered: Answered) -> None:
        """Count an answer."""
        why, inputs = self._safe(answered.why, [answered.call.input, answered.rewritten])
        calls = [call_line(answered.call.tool_name, each) for each in inputs if each is not None]
        why = why.replace(f"; {remedy(answered.by.partition('(')[2].rstrip(')'))}", "")  # the same in every row
        row = _Row(answered.verdict, "\n→ ".join(calls), why)
        place = f"{os.path.basename(answered.file)}:{answered.line}"
        _, counts = self._rows.setdefault(row, (place, {}))
        counts[answered.then] = counts.get(answered.then, 0) + 1

    def end(self, tally: Tally) -> None:
        """Do nothing: the table comes when the hooks have unloaded."""

    def print(self, tally: Tally) -> None:
        """Print the table, who answered how often, and the sums."""
        found = sorted(
            self._rows.items(), key=lambda each: (VERDICTS.index(each[0].verdict), -sum(each[1][1].values()))
        )
        if found:
            table = _table("verdict", "times", "then", "call", "why", "first at")
            for row, (place, counts) in found[:ROWS]:
                table.add_row(
                    row.verdict, str(sum(counts.values())), _counted(counts), *map(_text, (row.call, row.why, place))
                )
            console().print(table)
            if len(found) > ROWS:
                click.echo(f"and {count(len(found) - ROWS, 'more row')}; --json prints every call")
            table = _table("by", *VERDICTS)
            for by, verdicts in sorted(tally.by.items(), key=lambda each: [-each[1][verdict] for verdict in VERDICTS]):
                table.add_row(_text(by), *(str(verdicts[verdict] or "") for verdict in VERDICTS))
            click.echo()
            console().print(table)
            click.echo()
        for line in _sums(tally):
            click.echo(line)


def _sums(tally: Tally) -> Iterator[str]:
    yield (
        f"{count(tally.calls, 'call')} in {count(tally.files, 'file')}: {tally.blocked} blocked, {tally.asked} asked, "
        f"{tally.rewritten} rewritten, {tally.passed} passed"
    )
    if tally.blocked:
        yield f"of the blocked, {tally.ran} had not been stopped when they were recorded"
    if tally.invalid:
        yield f"{count(tally.invalid, 'call')} had an input that no tool takes, so no hook was asked"
    if tally.repeated:
        yield f"{tally.repeated} more were copies, and counted once"
    if tally.unread or tally.skipped:
        yield f"not read: {count(tally.unread, 'line')}, {count(tally.skipped, 'file')}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _text(text: str) -> Text:
    return Text(harmless(text))


def _counted(counts: Mapping[str, int]) -> str:
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{then} {times}" for then, times in counts.items())
