"""`agent-hooks replay`: take recorded sessions through today's hooks, and show the calls that they would have stopped.

No tool runs and nothing is changed; docs/replay.md says which effects hooks themselves may have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import click

from agent_hooks.bridges import BRIDGES
from agent_hooks.bridges.driver import wrong_matchers
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option, hook_option, json_option, required_option, without_option
from agent_hooks.cli.reports.replayed import JsonReport, Report, TableReport
from agent_hooks.cli.screen.wording import hook_error_text, short
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.setup import Setup, make_runner, paths_without, set_up
from agent_hooks.cli.streams import ReservedStdout, complain
from agent_hooks.cli.trusting import asked
from agent_hooks.errors import AgentHooksError, HookError, count
from agent_hooks.host.tools import builtin_tools
from agent_hooks.transcripts import Transcript, find_transcripts
from agent_hooks.transcripts.base import Reader, TranscriptError
from agent_hooks.transcripts.replaying import VERDICTS, Decision, Gates, Replay, ReplayUI, Tally
from agent_hooks.trust.policy import Trust, TrustedSources

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
