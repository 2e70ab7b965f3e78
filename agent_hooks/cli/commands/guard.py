"""`agent-hooks guard`: ask the built-in guards about a command, a corpus, or the calls on stdin."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, NamedTuple

import anyio
import click
import msgspec
from rich.table import Table

from agent_hooks.cli import remembered
from agent_hooks.cli.common import WholeHelpGroup
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.protection import guards_of
from agent_hooks.cli.reports.guards import Score, effect_data, effect_lines, read_corpus
from agent_hooks.cli.screen.wording import console, short
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.setup import set_up
from agent_hooks.cli.streams import ReservedStdout, echo, echo_json
from agent_hooks.cli.trusting import settle
from agent_hooks.concurrency.foreign import attempt
from agent_hooks.effects import effects_of
from agent_hooks.errors import HookError, describe
from agent_hooks.guards import BUILTIN, PolicyGuard
from agent_hooks.guards.base import LEVELS, Guard, GuardOptions, Level
from agent_hooks.guards.config import GuardSettings, expired, read_sections, tight
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.table import PACKS
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.remembering.kept import Kept
from agent_hooks.settings import merge_settings
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.trust.policy import Trust, TrustedSources
from agent_hooks.values.answers import Block

level_option = click.option(
    "--level", type=click.Choice(LEVELS), help="Judge at this level instead of the one in the settings."
)


@click.group("guard", cls=WholeHelpGroup, otherwise="about a command: agent-hooks guard explain WORD")
def command() -> None:
    """Ask the built-in guards: about a command, a corpus of them, or calls on stdin."""


class Scored(NamedTuple):
    """The guards' answer to one call."""

    verdict: str
    rule: str | None = None
    reason: str | None = None


def _judge(
    guards: list[Guard],
    tool: str,
    input: dict[str, Any],
    cwd: str,
    report: Callable[[HookError], None] = lambda error: None,
    *,
    attended: bool = False,
) -> Scored:
    """Let the guards judge a call. A guard that fails blocks, and `report` gets the failure.

    `attended`: as if a user could answer a question.
    """
    answer = ask_guards(guards, guarded_call(tool, input, cwd, attended=attended), report)
    if isinstance(answer, Block):
        return Scored("block", answer.rule or answer.by, answer.explanation)
    return Scored("ask", answer[0].rule or answer[0].by, answer[0].title) if answer else Scored("pass")


class _Setting(NamedTuple):
    """The guards of an agent that works in a directory, and their section of its settings."""

    section: GuardSettings
    guards: list[Guard]


def _setting(cwd: str, level: Level | None, **changed: Any) -> _Setting:
    """Return the guards of an agent in a directory, and warn of expired rules.  Raises `SettingsError`.

    `level`, `changed`: keys of the section to replace.
    """
    sources = settle(Trust(), cwd)
    settings = merge_settings(sources.trees)
    section = read_sections(settings.guards, tuple(BUILTIN))
    for sentence in expired(section, date.today()):
        echo(sentence, err=True)
    if level is not None:
        changed["level"] = level
    section = msgspec.structs.replace(section, **changed)
    return _Setting(section, guards_of(settings, section, sources.place))


@command.command("explain")
@click.argument("command_line", metavar="COMMAND")
@level_option
@cwd_option
def explain(command_line: str, level: Level | None, cwd: str) -> None:
    """Show the programs that COMMAND would run, the rules that it meets, and the verdict. Nothing is run."""
    # Imported here, because it loads the grammar.
    from agent_hooks.guards.shell import CommandSafetyGuard

    cwd = os.path.abspath(cwd)
    settings, guards = _setting(cwd, level)
    arguments = {"command": command_line}
    call = guarded_call("bash", arguments, cwd)
    finders = (each.finder for each in guards if isinstance(each, PolicyGuard))
    found = (each for each in finders if isinstance(each, CommandSafetyGuard))
    # A guard that the settings switch off explains the command all the same.
    guard = next(found, CommandSafetyGuard(GuardOptions(level=settings.level)))
    followed = guard.follow(command_line, call, trace=True)
    echo("would run:")
    for line in followed.trace or ["nothing"]:
        echo(f"  {line}")
    for finding in followed.findings:
        echo(f"rule {finding.rule}{' (undecidable)' if finding.undecidable else ''}: {finding}")
        if finding.subject and UNKNOWN not in finding.subject:
            echo(f"  an exception for this program only: {json.dumps({'pattern': tight(finding.subject)})}")
    echo("effects:")
    for line in effect_lines(effects_of("bash", arguments, cwd=cwd)) or ["none"]:
        echo(f"  {line}")
    scored = _judge(guards, "bash", arguments, cwd)
    rule = f" by {scored.rule}: {scored.reason}" if scored.rule else ""
    echo(f"verdict at level {settings.level}: {scored.verdict}{rule}")


@command.command("check")
@click.option("--json", "as_json", is_flag=True, required=True, help="JSON lines in and out; the only form so far.")
@level_option
@cwd_option
@click.pass_context
def check(ctx: click.Context, as_json: bool, level: Level | None, cwd: str) -> None:
    """Judge the calls on stdin: {"tool", "input"} per line; one line of JSON per line comes back.

    It has verdict (pass, block or ask), rule, reason, and effects: what the call would do. A line that cannot be read or
    judged is a block. The exit code is 1 when a guard failed at a line.
    """
    cwd = os.path.abspath(cwd)
    _, guards = _setting(cwd, level)
    failed = False
    for line in sys.stdin.buffer:
        if line.strip():
            errors: list[HookError] = []
            answer, failure = attempt(_judge_line, guards, line, cwd, errors.append)
            if failure is not None:
                # Any failure of the guards, the effects or the encoder is the answer to this line, and a block.  The next
                # lines are judged.
                answer = _unjudged(failure)
            failed = failed or failure is not None or bool(errors)
            echo_json(answer)
            sys.stdout.flush()
    ctx.exit(FAILED if failed else OK)


def _unjudged(failure: BaseException) -> str:
    """Return the answer to a line that could not be judged, as JSON."""
    scored = Scored("block", "not-judged", f"this call could not be judged, so it is blocked: {describe(failure)}")
    return json.dumps({**scored._asdict(), "effects": None})


def _judge_line(guards: list[Guard], line: bytes, cwd: str, report: Callable[[HookError], None]) -> str:
    """Return the answer to a line as JSON: the verdict, and the effects, or `None` for a line without a call.

    `report`: gets the failure of a guard.
    """
    try:
        call = msgspec.json.decode(line)
        tool, arguments = call["tool"], call["input"]
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise TypeError("tool is a text and input an object")
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, RecursionError) as exc:
        scored = Scored("block", "bad-input", f'expected {{"tool": …, "input": {{…}}}}: {describe(exc)}')
        return json.dumps({**scored._asdict(), "effects": None})
    effects = effect_data(effects_of(tool, arguments, cwd=cwd))
    return json.dumps({**_judge(guards, tool, arguments, cwd, report)._asdict(), "effects": effects})


@command.command("test")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@level_option
@click.option("--all-packs", is_flag=True, help="Switch the extended packs on.")
@click.option("--tier", help="Only rows with this in the column tier, for example core.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@cwd_option
@click.pass_context
def test(
    ctx: click.Context, file: str, level: Level | None, all_packs: bool, tier: str | None, as_json: bool, cwd: str
) -> None:
    """Score a corpus, per class; exit 1 below 97 % caught or above 1 % of harmless denied.

    The table has the blocked, asked and missed rows of the harmful ones, and the false rows of the harmless ones.

    FILE has tab-separated columns with a head line: expected (allow or deny), or a column named as the level; class;
    command or path, as a JSON string; for a path, ops (r, w, e). The guards answer as where a person can be asked; a
    question counts as denied.
    """
    cwd = os.path.abspath(cwd)
    settings, guards = _setting(cwd, level, **({"packs": PACKS} if all_packs else {}))
    score = Score()
    with working(f"judging {short(file)}"):
        for row in read_corpus(file, settings.level, tier):
            found = {_judge(guards, tool, arguments, cwd, attended=True) for tool, arguments in row.calls}
            wrong = [each for each in found if (each.verdict == "pass") != (row.expected == "allow")]
            asked = not wrong and any(each.verdict == "ask" for each in found)
            score.add(row, wrong=bool(wrong), asked=asked)
            for each in wrong[:1]:
                score.note(row, each.verdict, each.rule)
                if not as_json:
                    echo(f"{each.verdict} where {row.expected} is expected: {row.text} [{row.kind}] {each.rule or ''}")
    if score.empty:
        raise click.UsageError(f"{file}: no rows to judge")
    if as_json:
        echo_json(json.dumps({"level": settings.level, **score.record()}))
    else:
        table = Table("class", "harmful", "blocked", "asked", "missed", "harmless", "false", box=None, pad_edge=False)
        score.fill(table)
        console().print(table)
        echo(f"level {settings.level}: {score.summary()}")
    ctx.exit(OK if score.passes() else FAILED)


@command.command("exceptions")
@click.option("--revoke", type=click.IntRange(min=1), metavar="N", help="End the answer with this number.")
@json_option
@cwd_option
@click.pass_context
def exceptions(ctx: click.Context, revoke: int | None, as_json: bool, cwd: str) -> None:
    """List the answers that you have given for good, and the exceptions of settings; exit 1 for a wrong answer.

    An answer allows one program with its exact words, or one call that a hook asks about, in one project.
    """
    cwd = os.path.abspath(cwd)
    if revoke is not None:
        refuse_below_an_agent("guard exceptions --revoke")
        echo(remembered.revoke(revoke, cwd))
        ctx.exit(OK)
    store = remembered.store()
    sources = settle(Trust(), cwd)
    settings = merge_settings(sources.trees)
    found = store.find()
    rows = remembered.rows(found.kept, store, settings, _hooks_of(found.kept, cwd, sources))
    written = [{"file": path, **each} for path, section in settings.guards for each in _exceptions(section)]
    if as_json:
        echo_json(json.dumps({"answers": rows, "problems": list(found.problems), "settings": written}))
    else:
        if rows:
            console().print(remembered.table(rows))
            echo("to end one: agent-hooks guard exceptions --revoke N")
        for each in written:
            named = each.get("pattern", "all calls")
            echo(f"{short(each['file'])}: {each.get('id')}: {named}; to end it: remove it from the file")
        if not rows and not written:
            echo("no exceptions")
        for problem in found.problems:
            echo(f"problem: {problem}", err=True)
    ctx.exit(FAILED if found.problems else OK)


def _hooks_of(kept: Iterable[Kept], cwd: str, sources: TrustedSources) -> list[LoadedHook]:
    """Return the hooks of a directory if an answer is about a hook: only the loaded files tell whether it has changed."""
    if not any(each.hook for each in kept):
        return []
    with ReservedStdout():
        return list(anyio.run(set_up, cwd, (), sources).loaded.hooks)


def _exceptions(section: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the exceptions in a section of settings, as they were written."""
    listed = section.get("exceptions", [])
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
