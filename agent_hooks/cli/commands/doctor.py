"""`agent-hooks doctor`: what is wrong with hooks, settings and installations, and what mends it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable

import anyio
import click

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.cli.doctor.agents import AGENT_CHECKS, AgentCase
from agent_hooks.cli.doctor.checks import CHECKS, Case, Finding
from agent_hooks.cli.main import FAILED
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.setup import console, set_up
from agent_hooks.cli.stdout import ReservedStdout
from agent_hooks.errors import SettingsError
from agent_hooks.installs.places import PROGRAM, places
from agent_hooks.ui.harmless import harmless


@click.command("doctor")
@click.argument("agent", type=click.Choice(list(BRIDGES)), required=False)
@cwd_option
@json_option
@click.pass_context
def command(ctx: click.Context, agent: str | None, cwd: str, as_json: bool) -> None:
    """Check hooks, settings and installations, and show the remedy for each problem; exit 1 when there is one.

    An installation is tried out: your hooks see a call of Bash, `true`, in a session named "agent-hooks doctor".
    """
    with ReservedStdout():
        found = [_from_here(finding, cwd) for finding in _examine(agent, os.path.abspath(cwd))]
    if as_json:
        click.echo(json.dumps({"findings": [finding._asdict() for finding in found]}))
    else:
        _print(found)
    ctx.exit(FAILED if any(finding.status == "problem" for finding in found) else 0)


def _from_here(finding: Finding, cwd: str) -> Finding:
    """Return a finding with a remedy that works in this directory: `install` and others work in their own."""
    if os.path.samefile(cwd, ".") or not finding.remedy.startswith(f"{PROGRAM} "):
        return finding
    return finding._replace(remedy=f"cd {shlex.quote(os.path.relpath(cwd))} && {finding.remedy}")


def _examine(agent: str | None, cwd: str) -> list[Finding]:
    case, failure, found = Case(cwd, None), None, list[Finding]()
    try:
        case = case._replace(setup=anyio.run(set_up, case.cwd, ()))
    except SettingsError as exc:
        failure = str(exc)
    for check in CHECKS:
        found += list(check(case))
    if failure is not None:
        found.append(Finding("problem", "settings", failure, "mend the file; until then every tool call is denied"))
    for name in BRIDGES if agent is None else [agent]:
        bridge = open_bridge(name)
        there = places(bridge, case.cwd)
        examined = AgentCase(case, bridge, name == agent, there, bridge.facts(case.cwd, os.environ), found)
        for agent_check in AGENT_CHECKS:
            found += list(agent_check(examined))
    return found


def _print(found: Iterable[Finding]) -> None:
    from rich.table import Table  # here, for it is large

    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for status, what, text, remedy in found:
        mark = {"ok": "ok", "warning": "WARNING", "problem": "PROBLEM"}[status]
        table.add_row(mark, what, harmless(f"{text}\n→ {remedy}" if remedy else text))
    console().print(table)
