"""`agent-hooks doctor`: the problems of hooks, settings and installations, and the remedy for each."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Iterable

import anyio
import click

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.cli.doctor import AGENT_CHECKS, CHECKS
from agent_hooks.cli.doctor.base import AgentCase, Case, Diagnosis
from agent_hooks.cli.doctor.lasting import clear_alarms
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import ALL, cwd_option, json_option
from agent_hooks.cli.screen.wording import console
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.setup import set_up
from agent_hooks.cli.streams import ReservedStdout, echo, echo_json
from agent_hooks.cli.trusting import asked as asked_about
from agent_hooks.errors import SettingsError, describe
from agent_hooks.installs.places import installations, presence
from agent_hooks.trust.manifest import TrustError
from agent_hooks.trust.policy import Trust
from agent_hooks.ui.harmless import harmless

_MARKS = {"ok": "ok", "warning": "WARNING", "problem": "PROBLEM"}


@click.command("doctor")
@click.argument("agents", metavar="[AGENT…]", type=click.Choice([*BRIDGES, ALL]), nargs=-1)
@click.option("--clear-alarm", is_flag=True, help="Let the sessions go on that the tripwire has stopped.")
@cwd_option
@json_option
@click.pass_context
def command(ctx: click.Context, agents: tuple[str, ...], clear_alarm: bool, cwd: str, as_json: bool) -> None:
    """Check hooks, settings and installations, and show the remedy for each problem; exit 1 when there is one.

    Without an AGENT, each installation is checked. `all` stands for each agent that is on this machine. An installation
    is tried out: your hooks get a call of the shell, `true`, in a session named "agent-hooks doctor".
    """
    if clear_alarm:
        echo("\n".join(clear_alarms()) or "no session is stopped")
        ctx.exit(OK)
    cwd = os.path.abspath(cwd)
    case, failure = _case(cwd)
    with ReservedStdout(), working("examining hooks, settings and installations"):
        found = [_from_here(each, cwd) for each in _examine(agents, case, failure)]
    if as_json:
        echo_json(json.dumps({"findings": [_as_json(each) for each in found]}))
    else:
        _print(found)
    ctx.exit(FAILED if any(each.status == "problem" for each in found) else OK)


def _from_here(diagnosis: Diagnosis, cwd: str) -> Diagnosis:
    """Return the diagnosis with a remedy that works in the current directory."""
    if not diagnosis.in_project or os.path.samefile(cwd, "."):
        return diagnosis
    return diagnosis._replace(remedy=f"cd {shlex.quote(os.path.relpath(cwd))} && {diagnosis.remedy}")


def _as_json(diagnosis: Diagnosis) -> dict[str, str]:
    return {"status": diagnosis.status, "what": diagnosis.what, "text": diagnosis.text, "remedy": diagnosis.remedy}


def _case(cwd: str) -> tuple[Case, str | None]:
    """Return the directory with its sources, after asking about those that wait, or the reason why it has none."""
    try:
        return Case(cwd, None, asked_about(Trust(), cwd)), None
    except (SettingsError, TrustError) as exc:
        return Case(cwd, None), str(exc)


def _examine(agents: Collection[str], case: Case, failure: str | None) -> list[Diagnosis]:
    found = list[Diagnosis]()
    if case.sources is not None:
        try:
            case = case._replace(setup=anyio.run(set_up, case.cwd, (), case.sources))
        except SettingsError as exc:
            failure = str(exc)
    for check in CHECKS:
        found += list(check(case))
    if failure is not None:
        found.append(Diagnosis("problem", "settings", failure, "mend the file; until then every tool call is denied"))
    for name in BRIDGES if not agents or ALL in agents else dict.fromkeys(agents):
        try:
            bridge = open_bridge(name)
        # The files of this package are damaged, or of two versions; the other agents are checked all the same.
        except Exception as exc:
            text = f"its bridge cannot be used, so its calls are denied: {describe(exc)}"
            found.append(Diagnosis("problem", name, text, "install agent_hooks again"))
            continue
        installed, here = installations(bridge, case.cwd), presence(bridge, case.cwd)
        asked = name in agents or (ALL in agents and bool(here))
        if not (asked or installed or here):
            if ALL in agents:
                found.append(Diagnosis("ok", name, f"not here: {here.absence()}"))
            continue
        examined = AgentCase(case, bridge, asked, installed, bridge.facts(case.cwd, os.environ), found)
        for agent_check in AGENT_CHECKS:
            found += list(agent_check(examined))
    return found


def _print(found: Iterable[Diagnosis]) -> None:
    # Imported here, because it is large.
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for each in found:
        text = f"{each.text}\n→ {each.remedy}" if each.remedy else each.text
        table.add_row(_MARKS[each.status], each.what, harmless(text))
    console().print(table)
