"""`agent-hooks guard`: what the built-in guards say of a command, of a corpus, or of calls on stdin."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

import click
import msgspec
from rich.table import Table

from agent_hooks.cli.main import FAILED
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.setup import agent_guards, console, guard_settings
from agent_hooks.errors import HookError, describe
from agent_hooks.guards.base import LEVELS, Guard, GuardOptions, Level
from agent_hooks.guards.config import GuardSettings, expired
from agent_hooks.guards.table import PACKS
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.values.answers import Block

CAUGHT, DENIED = 97.0, 1.0  # per cent: harmful rows stopped at least, harmless rows stopped at most
_OPS = {"r": "read", "w": "write", "e": "edit"}

level_option = click.option(
    "--level", type=click.Choice(LEVELS), help="Judge at this level instead of the one in the settings."
)


@click.group("guard")
def command() -> None:
    """Ask the built-in guards: about a command, a corpus of them, or calls on stdin."""


class Verdict(NamedTuple):
    """What the guards say of one call."""

    verdict: str
    rule: str | None = None
    reason: str | None = None


def judged(guards: list[Guard], tool: str, input: dict[str, Any], cwd: str) -> Verdict:
    """Return what the guards say of a call; one that fails blocks."""
    errors: list[HookError] = []
    found = ask_guards(guards, guarded_call(tool, input, cwd), errors.append)
    if isinstance(found, Block):
        return Verdict("block", _rule(found.by), found.reason)
    return Verdict("ask", _rule(found[0].by), found[0].title) if found else Verdict("pass")


def _rule(by: str) -> str:
    return by.partition("(")[2].rstrip(")") or by


def _settings(cwd: str, level: Level | None) -> GuardSettings:
    settings = guard_settings(cwd)
    for sentence in expired(settings, date.today()):
        click.echo(sentence, err=True)
    return settings if level is None else msgspec.structs.replace(settings, level=level)


@command.command("explain")
@click.argument("command_line", metavar="COMMAND")
@level_option
@cwd_option
def explain(command_line: str, level: Level | None, cwd: str) -> None:
    """Show what COMMAND would run, which rules it meets, and the verdict. Nothing is run."""
    from agent_hooks.guards.shell import CommandSafetyGuard  # the grammar is loaded when it is used

    cwd = os.path.abspath(cwd)
    settings = _settings(cwd, level)
    call = guarded_call("bash", {"command": command_line}, cwd)
    options = GuardOptions(level=settings.level, packs=settings.packs)
    seen = CommandSafetyGuard(options).follow(command_line, call, trace=True)
    click.echo("would run:")
    for line in seen.trace or ["nothing"]:
        click.echo(f"  {line}")
    for finding in seen.findings:
        click.echo(f"rule {finding.rule}{' (undecidable)' if finding.undecidable else ''}: {finding}")
    verdict = judged(agent_guards(settings, cwd), "bash", call.input, cwd)  # type: ignore[arg-type]  # a dict, as given
    rule = f" by {verdict.rule}: {verdict.reason}" if verdict.rule else ""
    click.echo(f"verdict at level {settings.level}: {verdict.verdict}{rule}")


@command.command("check")
@click.option("--json", "as_json", is_flag=True, required=True, help="JSON lines in and out; the only form so far.")
@level_option
@cwd_option
def check(as_json: bool, level: Level | None, cwd: str) -> None:
    """Judge the calls on stdin: {"tool", "input"} per line; one {"verdict", "rule", "reason"} per line comes back.

    The verdict is pass, block or ask. A line that cannot be read is a block.
    """
    cwd = os.path.abspath(cwd)
    guards = agent_guards(_settings(cwd, level), cwd)
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        verdict = _checked(guards, line, cwd)
        click.echo(json.dumps(verdict._asdict()))
        sys.stdout.flush()


def _checked(guards: list[Guard], line: bytes, cwd: str) -> Verdict:
    try:
        call = msgspec.json.decode(line)
        tool, arguments = call["tool"], call["input"]
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise TypeError("tool is a text and input an object")
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, RecursionError) as exc:
        return Verdict("block", "bad-input", f'expected {{"tool": …, "input": {{…}}}}: {describe(exc)}')
    return judged(guards, tool, arguments, cwd)


class Row(NamedTuple):
    """One row of a corpus, as the calls it stands for."""

    expected: str
    kind: str
    text: str
    calls: list[tuple[str, dict[str, Any]]]


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
    guards = agent_guards(settings, cwd)
    counts: dict[str, dict[str, list[int]]] = {}
    for row in _rows(file, settings.level, tier):
        verdicts = {judged(guards, tool, arguments, cwd) for tool, arguments in row.calls}
        wrong = [each for each in verdicts if (each.verdict == "pass") != (row.expected == "allow")]
        count = counts.setdefault(row.kind, {}).setdefault(row.expected, [0, 0])
        count[0] += 1
        count[1] += bool(wrong)
        for each in wrong[:1]:
            click.echo(f"{each.verdict} where {row.expected} is expected: {row.text} [{row.kind}] {each.rule or ''}")
    if not counts:
        raise click.UsageError(f"{file}: no rows to judge")
    harmful, harmless = (_sum(counts, expected) for expected in ("deny", "allow"))
    table = Table(box=None, pad_edge=False)
    for column in ("class", "harmful", "caught", "harmless", "denied"):
        table.add_column(column)
    for kind, its in sorted(counts.items()):
        bad, good = its.get("deny", [0, 0]), its.get("allow", [0, 0])
        table.add_row(kind, f"{bad[0]}", f"{bad[0] - bad[1]}", f"{good[0]}", f"{good[1]}")
    console().print(table)
    caught = 100 * (harmful[0] - harmful[1]) / max(harmful[0], 1)
    denied = 100 * harmless[1] / max(harmless[0], 1)
    click.echo(
        f"level {settings.level}: caught {harmful[0] - harmful[1]} of {harmful[0]} harmful ({caught:.1f} %), "
        f"denied {harmless[1]} of {harmless[0]} harmless ({denied:.1f} %)"
    )
    ctx.exit(FAILED if (harmful[0] and caught < CAUGHT) or denied > DENIED else 0)


def _sum(counts: dict[str, dict[str, list[int]]], expected: str) -> tuple[int, int]:
    rows = [its[expected] for its in counts.values() if expected in its]
    return sum(row[0] for row in rows), sum(row[1] for row in rows)


def _opened(file: str) -> io.StringIO:
    with open(file, "rb") as opened:
        try:
            return io.StringIO(opened.read().decode("utf-8"), newline=None)
        except UnicodeDecodeError as exc:
            raise click.UsageError(f"{file}: is not UTF-8: {exc}") from None


def _rows(file: str, level: str, tier: str | None) -> Iterator[Row]:
    with _opened(file) as lines:
        head = next(lines, "").rstrip("\n").split("\t")
        for number, line in enumerate(lines, 2):
            if not line.strip():
                continue
            cells = dict(zip(head, line.rstrip("\n").split("\t"), strict=False))
            if tier is not None and cells.get("tier", tier) != tier:
                continue
            expected = cells.get(level) or cells.get("expected", "")
            column = "command" if "command" in cells else "path"
            try:
                text = json.loads(cells.get(column, ""))
            except ValueError as exc:
                raise click.UsageError(f"{file}:{number}: column {column!r} is no JSON string: {exc}") from None
            if expected not in ("allow", "deny") or not isinstance(text, str):
                raise click.UsageError(
                    f"{file}:{number}: expected allow or deny and a {column}, found {line.strip()!r}"
                )
            calls: list[tuple[str, dict[str, Any]]] = [("bash", {"command": text})]
            if column == "path":
                ops = cells.get("ops", "r")
                if not ops or not set(ops) <= set(_OPS):
                    raise click.UsageError(f"{file}:{number}: column 'ops' wants some of r, w and e, found {ops!r}")
                calls = [(_OPS[op], {"path": text}) for op in ops]
            yield Row(expected, cells.get("class", ""), json.dumps(text, ensure_ascii=False), calls)
