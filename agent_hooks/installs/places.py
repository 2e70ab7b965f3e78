"""Where another agent runs our hooks from: its settings files, what is installed there, and what is missing.

Above: install, uninstall, bridge, doctor.  Below: bridges, bridging, settings_edit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from agent_hooks.bridges.base import Bridge, Installed
from agent_hooks.bridges.driver import needed_events
from agent_hooks.errors import SettingsError
from agent_hooks.installs.generated import stub_path

PROGRAM = "agent-hooks"


class Target(Struct, frozen=True):
    """A settings file of another agent: `local`, `project` or `user`, and its absolute path."""

    name: str
    path: str


class Place(Struct, frozen=True):
    """A settings file and our entries in it; `problem`: why it cannot be read."""

    target: Target
    entries: tuple[Installed, ...] = ()
    problem: str = ""

    def commands(self, event: str) -> set[tuple[str, ...]]:
        """Return what our entries run at an event."""
        return {entry.command for entry in self.entries if entry.event == event}


def entry_command(bridge: Bridge, target: str) -> list[str]:
    """Return what an entry runs; the event's name comes after it.

    A file that is shared names no path of this machine; the others name the generated file, which `write_stub` writes.
    """
    if target == "project":
        return [PROGRAM, "bridge", bridge.name, "--resident"]
    return [sys.executable, "-I", "-S", str(stub_path(bridge))]


def targets(bridge: Bridge, project: str, environment: Mapping[str, str] = os.environ) -> dict[str, Target]:
    """Return the settings files by name."""
    files = bridge.settings_files(environment)
    return {
        name: Target(name, os.path.abspath(os.path.join(project, os.path.expanduser(file))))
        for name, file in files.items()
    }


def places(bridge: Bridge, project: str, environment: Mapping[str, str] = os.environ) -> list[Place]:
    """Return the settings files that hold entries of ours, or cannot be read; each file once."""
    from agent_hooks.installs.edits import read_settings  # here, for most events of an agent need no look at them

    found: dict[str, Place] = {}
    for target in targets(bridge, project, environment).values():
        try:
            place = Place(target, tuple(bridge.installed(read_settings(target.path)[1])))
        except SettingsError as exc:
            place = Place(target, problem=str(exc))
        real = os.path.realpath(target.path)
        if (place.entries or place.problem) and real not in found:
            found[real] = place
    return list(found.values())


def twice(one: Place, other: Place) -> list[str]:
    """Return the events at which both files run us, in two ways; the same command in two files runs once."""
    events = dict.fromkeys(entry.event for entry in one.entries)
    return [event for event in events if other.commands(event) and one.commands(event) != other.commands(event)]


def missing(bridge: Bridge, installed: Sequence[Place], listened: Collection[str]) -> list[str]:
    """Return a sentence for each event that somebody listens to, or that is always needed, and that never arrives.

    Nothing, where no file holds an entry: then we were started in another way.
    """
    there = [place for place in installed if place.entries]
    if not there:
        return []
    remedy = install_line(bridge, there[0].target.name)
    whole = {entry.event for place in there for entry in place.entries if not entry.limit}
    limits = {entry.event: entry.limit for place in there for entry in place.entries}
    said = []
    for event, by in needed_events(bridge.describe(), listened).items():
        if event not in whole:
            where = f"is installed with {limits[event]} only" if event in limits else "is not installed"
            who = f", which {' and '.join(by)} need{'s' if len(by) == 1 else ''}," if by else ""
            said.append(f"{event}{who} {where}: {remedy}")
    return said


def install_line(bridge: Bridge, target: str) -> str:
    """Return the command that installs."""
    return f"{PROGRAM} install {bridge.name} --{target}"


def uninstall_line(bridge: Bridge, target: str) -> str:
    """Return the command that uninstalls."""
    return f"{PROGRAM} uninstall {bridge.name} --{target}"
