"""`agent-hooks unlock`: let the agent change hooks and settings for a limited time."""

from __future__ import annotations

import getpass
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import click

from agent_hooks.cli.lifetime import OK
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.proving import prove_loosening
from agent_hooks.cli.remembered import note, person_settings
from agent_hooks.cli.reports.unlocking import sentence, summary
from agent_hooks.cli.streams import echo, tell
from agent_hooks.cli.trusting import demand_person
from agent_hooks.records.lines import HookFile, Unlock
from agent_hooks.records.recorder import CallRecorder
from agent_hooks.runner.runner import HookRunner
from agent_hooks.trust.contents import Edit
from agent_hooks.trust.place import find_place
from agent_hooks.trust.unlock import begin, edits, end
from agent_hooks.trust.unlocked import Unlocked, read_state, state_path
from agent_hooks.ui.harmless import harmless

_UNITS = {"s": 1, "m": 60, "h": 3600}


@click.command("unlock")
@click.argument("duration", required=False)
@click.option("--own", is_flag=True, help="Unlock your own hooks and settings, in the agent home, too.")
@click.option("--end", "ends", is_flag=True, help="Lock them again now, and show the changes.")
@cwd_option
@click.pass_context
def command(ctx: click.Context, duration: str | None, own: bool, ends: bool, cwd: str) -> None:
    """Let the agent change the hooks, transformers and settings of this project for DURATION: 15m, 1h30m, at most 8h.

    Meanwhile the trust store, records and installed files stay locked.  Without DURATION, the state is shown.
    """
    demand_person("unlock")
    former = read_state(state_path())
    if former is not None and (ends or not former.is_in_force()):
        _show_end(former)
    elif ends:
        end()
        tell("nothing is unlocked")
    if duration is not None and not ends:
        seconds = _seconds(duration)
        prove_loosening("unlock", duration, *["--own"] * own)
        state = begin(find_place(cwd), seconds, own=own)
        _record(state, "begin")
        _show(state)
    elif former is not None and former.is_in_force() and not ends:
        _show(former)
    elif former is None and not ends:
        raise click.UsageError("nothing is unlocked; say for how long: agent-hooks unlock 15m")
    ctx.exit(OK)


def _seconds(text: str) -> float:
    parts = re.findall(r"(\d+)([smh])", text)
    if not parts or "".join(map("".join, parts)) != text:
        raise click.UsageError(f"{text!r} is no duration; write 15m, 2h or 1h30m")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def _show(state: Unlocked) -> None:
    echo(f"{sentence(state)}; to end it: agent-hooks unlock --end")


def _show_end(former: Unlocked) -> None:
    changed = edits(former)
    end()
    _record(former, "end", changed)
    tell(f"locked again: {summary(changed)}")
    for each in changed:
        echo(harmless(each.diff))
    if changed:
        tell("to let the changed hooks of the project count: agent-hooks trust")


def _record(state: Unlocked, event: Literal["begin", "end"], edits: Sequence[Edit] = ()) -> None:
    """Write the begin or the end of an unlocking, unless the person's settings turn records off.

    A line that cannot be written is told on stderr, and hinders nothing.
    """

    def write(runner: HookRunner, recorder: CallRecorder) -> None:
        runner.record_edits(edits, state.directories)
        fields = {
            "event": event,
            "until": datetime.fromtimestamp(state.until, UTC),
            "user": _user(),
            "edits": tuple(HookFile(path=each.path, sha256=each.after) for each in edits),
        }
        recorder.line(Unlock, fields)

    note(state.project, person_settings(state.project), write)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A user without a name.
        return ""
