"""`agent-hooks replay`: take recorded sessions through today's hooks, and show the calls that they would have stopped.

No tool runs and nothing is changed; docs/replay.md says which effects hooks themselves may have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import anyio
import click
import msgspec
from rich.text import Text

from agent_hooks.bridges import BRIDGES
from agent_hooks.bridges.driver import wrong_matchers
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option, hook_option, json_option, required_option, without_option
from agent_hooks.cli.screen.wording import console, hook_error_text, plain_table, short
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.setup import Setup, make_runner, paths_without, set_up
from agent_hooks.cli.streams import ReservedStdout, complain, echo
from agent_hooks.cli.trusting import asked
from agent_hooks.errors import AgentHooksError, HookError, count
from agent_hooks.host.tools import builtin_tools
from agent_hooks.redaction import Redactor
from agent_hooks.transcripts import Transcript, find_transcripts
from agent_hooks.transcripts.base import Reader, TranscriptError
from agent_hooks.transcripts.replaying import VERDICTS, Answered, Decision, Gates, Replay, ReplayUI, Tally
from agent_hooks.trust.policy import Trust, TrustedSources
from agent_hooks.ui.harmless import harmless
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import call_line
from agent_hooks.values.wire import to_json

_SHOWN = 20
"""The most unreadable lines that are shown; the others are only counted."""


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, metavar="TRANSCRIPT...", type=click.Path(exists=True))
@hook_option
@without_option
@cwd_option
@json_option
@required_option
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
    without: tuple[str, ...],
    cwd: str,
    as_json: bool,
    require_trusted: bool,
    fail_on: Decision | None,
) -> None:
    """Show the calls of recorded sessions that your hooks, guards and transformers would have stopped or changed.

    A TRANSCRIPT is one of Claude Code, Codex, Copilot CLI, Gemini CLI, OpenCode, pi or Qwen Code, a session of
    agent-hooks (.agent/sessions/*.jsonl), or a directory: all *.jsonl below it. No tool is run. The hooks and settings
    are those of --cwd.
    """
    sources = asked(Trust(required=require_trusted), cwd)
    with ReservedStdout() as stdout:
        report: Report = JsonReport(stdout.write) if as_json else TableReport()
        left_out = paths_without(without, cwd, sources)
        with working("replaying"):
            tally = anyio.run(_Replaying(paths, hook_files, left_out, os.path.abspath(cwd), report, sources).run)
        report.end(tally)
        broken = stdout.broken
    report.close(tally)
    if broken is not None:
        raise AgentHooksError(f"the answer could not be written: {broken}")
    counts = {"block": tally.blocked, "ask": tally.asked, "rewrite": tally.rewritten}
    failed = fail_on is not None and any(counts[each] for each in VERDICTS[: VERDICTS.index(fail_on) + 1])
    ctx.exit(FAILED if failed else OK)


class _Replaying:
    """One run of the command: loads the hooks, opens the transcripts, and prints the problems of both."""

    def __init__(
        self,
        paths: tuple[str, ...],
        hook_files: tuple[str, ...],
        without: tuple[str, ...],
        cwd: str,
        report: Report,
        sources: TrustedSources,
    ) -> None:
        self._paths = paths
        self._hook_files = hook_files
        self._without = without
        self._cwd = cwd
        self._report = report
        self._sources = sources
        # Loaded for the next session.
        self._setup: Setup | None = None
        self._unread = 0
        self._printed: set[object] = set()
        self._replay = Replay(self._open_gates, report.add, self._bad_line)

    async def run(self) -> Tally:
        """Replay all transcripts; raises `AgentHooksError`, also when a hook cannot be loaded."""
        files = list(find_transcripts(self._paths))
        if not files:
            raise click.UsageError(f"there is no *.jsonl below {', '.join(self._paths)}")
        for path, named in files:
            # Only files: a pipe can be read only once.
            if named and os.path.isfile(path):
                _open(path).close()
        self._setup = await self._load()
        self._report.redactor = self._setup.redactor
        for warning in self._setup.warnings():
            complain(warning)
        tally = await self._replay.run(self._transcripts(files))
        if self._unread > _SHOWN:
            complain(f"{count(self._unread - _SHOWN, 'more line')} not read")
        return tally

    def _transcripts(self, files: list[tuple[str, bool]]) -> Iterator[Transcript]:
        for path, named in files:
            if named:
                yield _open(path)
                continue
            try:
                yield Transcript(path)
            except TranscriptError as exc:
                self._replay.tally.skipped += 1
                complain(f"skipped: {exc}")

    async def _load(self) -> Setup:
        setup = await set_up(self._cwd, self._hook_files, self._sources, without=self._without)
        if setup.errors:
            raise AgentHooksError(
                "\n".join([f"not loaded: {error}" for error in setup.errors] + ["nothing was replayed"])
            )
        return setup

    async def _open_gates(self, reader: Reader) -> Gates:
        """Load the hooks for another session, as the agent that recorded it would."""
        setup, self._setup = self._setup or await self._load(), None
        schemas: dict[str, Mapping[str, Any]] = {}
        # The schemas of another agent's tools are not known.
        if reader.name not in BRIDGES:
            tools = [*builtin_tools(cwd=setup.cwd), *(tool for hook in setup.loaded.hooks for tool in hook.tools)]
            schemas = {tool.name: tool.input_schema for tool in tools}
        runner = make_runner(setup, "replay", ui=ReplayUI(), guards=setup.guards())
        runner.on_error(self._hook_error)
        for warning in wrong_matchers(runner, reader.tools):
            self._print_once(warning, warning)
        return Gates(runner, schemas)

    def _hook_error(self, error: HookError) -> None:
        key = (error.hook_path, error.handler, error.event, error.line, error.exception and type(error.exception))
        file, line = self._replay.place
        self._print_once(key, f"hook error at {short(file)}:{line}, shown once: {hook_error_text(error)}")

    def _print_once(self, key: object, text: str) -> None:
        """Print a text once, and not for each of a thousand calls."""
        if key not in self._printed:
            self._printed.add(key)
            complain(text)

    def _bad_line(self, file: str, line: int, error: str) -> None:
        self._unread += 1
        if self._unread <= _SHOWN:
            complain(f"{short(file)}:{line}: {error}; the rest of the file is replayed")


def _open(path: str) -> Transcript:
    """Open a transcript that the person named; raises `click.UsageError`."""
    try:
        return Transcript(path)
    except TranscriptError as exc:
        raise click.UsageError(str(exc)) from None


ROWS = 100
"""The most rows of the table; the others are only counted."""


class Report(Protocol):
    """A report of a replay: `add` for each answer, `end` after the last, `close` when the hooks have unloaded."""

    redactor: Redactor | None

    def add(self, answered: Answered) -> None:
        """Take the answer to one recorded call."""
        ...

    def end(self, tally: Tally) -> None:
        """Take the sums."""
        ...

    def close(self, tally: Tally) -> None:
        """Print the rest; stdout is the command's own again."""
        ...


class JsonReport:
    """One JSON object a line, as soon as it is known."""

    redactor: Redactor | None = None

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def add(self, answered: Answered) -> None:
        """Print an answer."""
        call = answered.call
        why, (given, rewritten) = _hidden(self.redactor, answered.why, [call.input, answered.rewritten])
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

    def close(self, tally: Tally) -> None:
        """Do nothing: the summary was the last line."""


class _Row(NamedTuple):
    """The key of a row: calls with the same answer to the same input share it."""

    verdict: Decision
    call: str
    why: str


class TableReport:
    """A table with a row for each different call, the worst and then the most frequent first."""

    redactor: Redactor | None = None

    def __init__(self) -> None:
        # Row → the first place, and the number of each outcome.
        self._rows: dict[_Row, tuple[str, dict[str, int]]] = {}

    def add(self, answered: Answered) -> None:
        """Count an answer."""
        # With the remedy, every row would repeat the same sentence.
        why, inputs = _hidden(self.redactor, answered.brief, [answered.call.input, answered.rewritten])
        calls = [call_line(answered.call.tool_name, each) for each in inputs if each is not None]
        row = _Row(answered.verdict, "\n→ ".join(calls), why)
        place = f"{os.path.basename(answered.file)}:{answered.line}"
        _, counts = self._rows.setdefault(row, (place, {}))
        counts[answered.then] = counts.get(answered.then, 0) + 1

    def end(self, tally: Tally) -> None:
        """Do nothing: hooks may print until they have unloaded."""

    def close(self, tally: Tally) -> None:
        """Print the calls, the answers of each hook and guard, and the sums."""
        if self._rows:
            self._print_calls()
            _print_signers(tally)
        for line in _sums(tally):
            echo(line)

    def _print_calls(self) -> None:
        found = sorted(
            self._rows.items(), key=lambda each: (VERDICTS.index(each[0].verdict), -sum(each[1][1].values()))
        )
        table = plain_table("verdict", "times", "then", "call", "why", "first at")
        for row, (place, counts) in found[:ROWS]:
            table.add_row(
                row.verdict, str(sum(counts.values())), _outcomes(counts), *map(_text, (row.call, row.why, place))
            )
        console().print(table)
        if len(found) > ROWS:
            echo(f"and {count(len(found) - ROWS, 'more row')}; --json prints every call")
        echo()


def _print_signers(tally: Tally) -> None:
    table = plain_table("by", *VERDICTS)
    for by, verdicts in sorted(tally.by.items(), key=lambda each: [-each[1][verdict] for verdict in VERDICTS]):
        table.add_row(_text(by), *(str(verdicts[verdict] or "") for verdict in VERDICTS))
    console().print(table)
    echo()


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


def _hidden(redactor: Redactor | None, why: str, inputs: Any) -> tuple[str, Any]:
    """Return a reason and inputs without secrets."""
    if redactor is None:
        return why, inputs
    hidden, _ = redactor.output(ToolOutput(why, inputs))
    return hidden.text, hidden.details


def _text(text: str) -> Text:
    return Text(harmless(text))


def _outcomes(counts: Mapping[str, int]) -> str:
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{then} {times}" for then, times in counts.items())
