"""The checks of an agent's powers, of its trust in our entries, and of the plugin that it has loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from agent_hooks import __version__
from agent_hooks.bridges.base.installation import POWERS
from agent_hooks.cli.doctor.base import AgentCase, Diagnosis
from agent_hooks.cli.screen.wording import short
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import read_settings
from agent_hooks.installs.generated import last_heartbeat, plugin_path
from agent_hooks.installs.places import Installation, entry_command, install_line, reading, same_command
from agent_hooks.installs.trusts import trust_path, untrusted

_HEARTBEAT = "the plugin"


def powers(case: AgentCase) -> Iterator[Diagnosis]:
    """Name each thing that the agent does not let hooks do, with the reason."""
    if not (case.asked or case.entries):
        return
    for power, reason in case.bridge.limits.items():
        yield case.ok(f"hooks cannot {POWERS[power]}: {reason}")
    for power, exception in case.bridge.gaps.items():
        yield case.ok(f"hooks can {POWERS[power]}, except that {exception}")


def trusted_entries(case: AgentCase) -> Iterator[Diagnosis]:
    """Check that the agent trusts each entry of ours, and that no entry of others has taken its position."""
    path = trust_path(case.bridge)
    if path is None:
        return
    for each in case.installations:
        if not each.entries:
            continue
        remedy = install_line(case.bridge, each.target.name)
        try:
            settings = read_settings(each.target.path, each.target.format)[1]
            left = untrusted(case.bridge, each.target.path, settings)
        except SettingsError as exc:
            yield case.problem(str(exc))
            continue
        if left:
            runs = "does not run them, and says nothing about it"
            text = f"{case.bridge.name} does not trust these entries of ours, so it {runs}"
            yield case.problem(f"{short(path)}: {text}: {', '.join(left)}", remedy, in_project=True)
        elif _would_change(case, each, settings):
            text = "our entries are not the first ones, or not as install writes them"
            yield case.problem(f"{short(each.target.path)}: {text}", remedy, in_project=True)
        else:
            yield case.ok(f"{short(path)}: trusts each of our entries")


def _would_change(case: AgentCase, installation: Installation, settings: dict[str, object]) -> bool:
    """Return whether another installation of the same events would change the settings."""
    ours = entry_command(case.bridge, installation.target.name)
    events = {entry.event for entry in installation.entries}
    # The entries may name the same Python by another name.
    command = next((e.command[:-1] for e in installation.entries if same_command(e.command[:-1], ours)), ours)
    return case.bridge.install(settings, command, events) != settings


def plugin(case: AgentCase) -> Iterator[Diagnosis]:
    """Check the plugin's sign of life: an agent that cannot load a plugin goes on without it."""
    if not case.bridge.plugin or not case.entries:
        return
    name, beat = case.bridge.name, last_heartbeat(case.bridge)
    start = f"start {name} again"
    if beat is None:
        text = f"{_HEARTBEAT} has not been loaded yet, so no call of {name} is judged before that"
        yield case.warning(text, f"{start}; if this stays, look for an error of the plugin at its start")
    elif beat.error is not None:
        text = f"{_HEARTBEAT} could not connect itself with {name}, so no call is judged: {beat.error.splitlines()[-1]}"
        yield case.problem(text, f"{install_line(case.bridge, 'user')}, then {start}")
    elif beat.version != __version__:
        text = f"{_HEARTBEAT} that {name} has loaded is of agent-hooks {beat.version}, and this is {__version__}"
        yield case.warning(text, f"{install_line(case.bridge, 'user')}, then {start}")
    elif _is_older(beat.time, str(plugin_path(case.bridge))):
        yield case.warning(f"{_HEARTBEAT} was loaded before the last installation", start)
    else:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(beat.time))
        yield case.ok(f"{_HEARTBEAT} was loaded on {at}")


def _is_older(moment: float, path: str) -> bool:
    try:
        return moment < os.stat(path).st_mtime
    except OSError:
        # The check of the commands reports a plugin that is missing.
        return False


def entries_of_others(case: AgentCase) -> Iterator[Diagnosis]:
    """Name the settings of another agent whose entries of ours this agent runs too."""
    if case.asked or case.entries:
        for text in reading(case.bridge, case.case.cwd, short):
            yield case.ok(text)
