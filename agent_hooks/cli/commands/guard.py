"""`agent-hooks guard`: ask the built-in guards about a command, a corpus, or the calls on stdin."""

from __future__ import annotations

import json
import os
import sys
from datetime import date
from typing import Any, NamedTuple

import click
import msgspec
from rich.table import Table

from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.reports.corpus import Score, read_corpus
from agent_hooks.cli.screen.wording import console
from agent_hooks.cli.setup import agent_guards
from agent_hooks.cli.trusting import settle
from agent_hooks.errors import HookError, describe
from agent_hooks.guards import BUILTIN
from agent_hooks.guards.base import LEVELS, Guard, GuardOptions, Level
from agent_hooks.guards.config import GuardSettings, expired, read_sections
from agent_hooks.guards.table import PACKS
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.settings import merge_settings
from agent_hooks.trust.place import find_place
from agent_hooks.trust.policy import Trust
from agent_hooks.values.answers import Block

level_option = click.option(
    "--level", type=click.Choice(LEVELS), help="Judge at this level instead of the one in the settings."
)


@click.group("guard")
def command() -> None:
    """Ask the built-in guards: about a command, a corpus of them, or calls on stdin."""


class Scored(NamedTuple):
    """The guards' answer to one call."""

    verdict: str
    rule: str | None = None
    reason: str | None = None


def _judge(guards: list[Guard], tool: str, input: dict[str, Any], cwd: str) -> Scored:
    """Let the guards judge a call; a guard that fails blocks."""
    errors: list[HookError] = []
    answer = ask_guards(guards, guarded_call(tool, input, cwd), errors.append)
    if isinstance(answer, Block):
        return Scored("block", answer.rule or answer.by, answer.explanation)
    return Scored("ask", answer[0].rule or answer[0].by, answer[0].title) if answer else Scored("pass")


def _settings(cwd: str, level: Level | None) -> GuardSettings:
    """Return the guards' section of the settings, and warn of expired rules; raises `SettingsError`."""
    settings = read_sections(merge_settings(settle(Trust(), cwd).trees).guards, tuple(BUILTIN))
    for sentence in expired(settings, date.today()):
        click.echo(sentence, err=True)
    return settings if level is None else msgspec.structs.replace(settings, level=level)


@command.command("explain")
@click.argument("command_line", metavar="COMMAND")
@level_option
@cwd_option
def explain(command_line: str, level: Level | None, cwd: str) -> None:
    """Show the programs that COMMAND would run, the rules that it meets, and the verdict. Nothing is run."""
    # Imported here, because it loads the grammar.
    from agent_hooks.guards.shell import CommandSafetyGuard

    cwd = os.path.abspath(cwd)
    settings = _settings(cwd, level)
    arguments = {"command": command_line}
    call = guarded_call("bash", arguments, cwd)
    options = GuardOptions(level=settings.level, packs=settings.packs)
    followed = CommandSafetyGuard(options).follow(command_line, call, trace=True)
    click.echo("would run:")
    for line in followed.trace or ["nothing"]:
        click.echo(f"  {line}")
    for finding in followed.findings:
        click.echo(f"rule {finding.rule}{' (undecidable)' if finding.undecidable else ''}: {finding}")
    scored = _judge(agent_guards(settings, find_place(cwd)), "bash", arguments, cwd)
    rule = f" by {scored.rule}: {scored.reason}" if scored.rule else ""
    click.echo(f"verdict at level {settings.level}: {scored.verdict}{rule}")


@command.command("check")
@click.option("--json", "as_json", is_flag=True, required=True, help="JSON lines in and out; the only form so far.")
@level_option
@cwd_option
def check(as_json: bool, level: Level | None, cwd: str) -> None:
    """Judge the calls on stdin: {"tool", "input"} per line; one {"verdict", "rule", "reason"} per line comes back.

    The verdict is pass, block or ask. A line that cannot be read is a block.
    """
    cwd = os.path.abspath(cwd)
    guards = agent_guards(_settings(cwd, level), find_place(cwd))
    for line in sys.stdin.buffer:
        if line.strip():
            click.echo(json.dumps(_judge_line(guards, line, cwd)._asdict()))
            sys.stdout.flush()


def _judge_line(guards: list[Guard], line: bytes, cwd: str) -> Scored:
    try:
        call = msgspec.json.decode(line)
        tool, arguments = call["tool"], call["input"]
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise TypeError("tool is a text and input an object")
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, RecursionError) as exc:
        return Scored("block", "bad-input", f'expected {{"tool": …, "input": {{…}}}}: {describe(exc)}')
    return _judge(guards, tool, arguments, cwd)


@command.command("test")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@level_option
@click.option("--all-packs", is_flag=True, help="Switch the extended packs on.")
@click.option("--tier", help="Only rows with this in the column tier, for example core.")
@cwd_option
@click.pass_context
def test(ctx: click.Context, file: str, level: Level | None, all_packs: bool, tier: str | None, cwd: str) -> None:
    """Score a corpus: caught, false denies, per class; exit 1 below 97 % caught or above 1 % of harmless denied.

    FILE has tab-separated columns with a head line: expected (allow or deny), or a column named as the level; class;
    command or path, as a JSON string; for a path, ops (r, w, e). A question counts as denied.
    """
    cwd = os.path.abspath(cwd)
    settings = _settings(cwd, level)
    if all_packs:
        settings = msgspec.structs.replace(settings, packs=PACKS)
    guards = agent_guards(settings, find_place(cwd))
    score = Score()
    for row in read_corpus(file, settings.level, tier):
        found = {_judge(guards, tool, arguments, cwd) for tool, arguments in row.calls}
        wrong = [each for each in found if (each.verdict == "pass") != (row.expected == "allow")]
        score.add(row, wrong=bool(wrong))
        for each in wrong[:1]:
            click.echo(f"{each.verdict} where {row.expected} is expected: {row.text} [{row.kind}] {each.rule or ''}")
    if score.empty:
        raise click.UsageError(f"{file}: no rows to judge")
    table = Table("class", "harmful", "caught", "harmless", "denied", box=None, pad_edge=False)
    score.fill(table)
    console().print(table)
    click.echo(f"level {settings.level}: {score.summary()}")
    ctx.exit(OK if score.passes() else FAILED)
