"""The installations of a bridge: the settings files of the other agent, our entries in them, and missing entries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.installation import Installed
from agent_hooks.bridges.driver import needed_events
from agent_hooks.errors import SettingsError, shown
from agent_hooks.installs.edits import Format
from agent_hooks.installs.generated import plugin_path, stub_path
from agent_hooks.storage.programs import find_program

PROGRAM = "agent-hooks"


class Target(Struct, frozen=True):
    """A settings file of another agent: `local`, `project` or `user`, its absolute path, and its format."""

    name: str
    path: str
    format: Format = "json"


class Installation(Struct, frozen=True):
    """A settings file and our entries in it; with `problem`, the file cannot be read, and the text says why."""

    target: Target
    entries: tuple[Installed, ...] = ()
    problem: str = ""

    def commands(self, event: str) -> set[tuple[str, ...]]:
        """Return the commands of our entries for an event."""
        return {entry.command for entry in self.entries if entry.event == event}


class MissingEvent(Struct, frozen=True):
    """A needed event that no entry sends us every time.

    `listeners`: the events and points of hooks that need it; empty for an event that is needed without them.
    `limits`: the settings of its entry, by key, that keep it from running each time; empty without an entry.
    `remedy`: the command that installs it.
    """

    event: str
    listeners: tuple[str, ...]
    limits: Mapping[str, Any]
    remedy: str

    def __str__(self) -> str:
        """Return the sentence for a person, without the remedy."""
        needs = "needs" if len(self.listeners) == 1 else "need"
        needed = f", which {' and '.join(self.listeners)} {needs}," if self.listeners else ""
        limits = ", ".join(f"{key} {shown(value)}" for key, value in self.limits.items())
        return f"{self.event}{needed} {f'is installed with {limits} only' if limits else 'is not installed'}"


class DoubledEntries(Struct, frozen=True):
    """Two settings files that run our hooks by different commands, so that events fire twice.

    `one`, `other`: the paths; `remedy`: the command that leaves one of them.
    """

    one: str
    other: str
    remedy: str

    def text(self, shorten: Callable[[str], str] = str) -> str:
        """Return the sentence for a person, with the paths as `shorten` returns them, and without the remedy."""
        files = f"{shorten(self.one)} and {shorten(self.other)}"
        return f"events fire twice here: {files} run your hooks by different commands"


def entry_command(bridge: Bridge, target: str) -> list[str]:
    """Return the command of an entry; the event's name comes after it.  For an agent with a plugin, it is the plugin.

    In a file that people share, the command names no path of this machine; in the others it names the generated file,
    which `write_stub` writes.
    """
    if bridge.plugin:
        return [str(plugin_path(bridge))]
    if target == "project":
        return [PROGRAM, "bridge", bridge.name, "--resident"]
    return [sys.executable, "-I", "-S", str(stub_path(bridge))]


def same_command(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two commands start the same program with the same arguments; see `same_program`."""
    return bool(one and other) and [*one[1:]] == [*other[1:]] and same_program(one[0], other[0])


def same_program(one: str, other: str) -> bool:
    """Return whether two absolute paths are names of one program in one directory, as `python` and `python3` often are.

    A link in another directory is another program: Python looks for its packages beside the link.
    """
    if one == other or not (os.path.isabs(one) and os.path.isabs(other)):
        return one == other
    is_one_directory = os.path.realpath(os.path.dirname(one)) == os.path.realpath(os.path.dirname(other))
    return is_one_directory and os.path.realpath(one) == os.path.realpath(other)


def targets(bridge: Bridge, project: str, environment: Mapping[str, str] = os.environ) -> dict[str, Target]:
    """Return the settings files that the agent has, by name, in the order `local`, `project`, `user`."""
    files = bridge.settings_files(environment)
    paths = {name: os.path.abspath(os.path.join(project, os.path.expanduser(file))) for name, file in files.items()}
    if bridge.settings_names and "user" in paths:
        paths["user"] = next(filter(os.path.lexists, _named(bridge, paths["user"])), paths["user"])
    return {name: Target(name, path, bridge.settings_format) for name, path in paths.items()}


def _named(bridge: Bridge, path: str) -> list[str]:
    """Return the paths that the person's settings file can have; the first one that exists counts."""
    return [os.path.join(os.path.dirname(path), name) for name in reversed(bridge.settings_names)]


def installations(bridge: Bridge, project: str, environment: Mapping[str, str] = os.environ) -> list[Installation]:
    """Return the settings files that hold entries of ours or cannot be read; each file once."""
    known = targets(bridge, project, environment)
    more = [Target("user", path, bridge.settings_format) for path in _named(bridge, known["user"].path)]
    found: dict[str, Installation] = {}
    for target in [*known.values(), *more]:
        each = installation(bridge, target)
        real = os.path.realpath(target.path)
        if (each.entries or each.problem) and real not in found:
            found[real] = each
    return list(found.values())


def installation(bridge: Bridge, target: Target) -> Installation:
    """Return our entries in one settings file."""
    # Imported here, because most events of an agent do not read settings.
    from agent_hooks.installs.edits import read_settings

    try:
        return Installation(target, tuple(bridge.installed(read_settings(target.path, target.format)[1])))
    except SettingsError as exc:
        return Installation(target, problem=str(exc))


def at_target(found: Sequence[Installation], target: Target) -> Installation | None:
    """Return the installation in a settings file; in the home directory, two targets can be one file."""
    path = os.path.realpath(target.path)
    return next((each for each in found if os.path.realpath(each.target.path) == path), None)


def runs_gates(bridge: Bridge, shared: Installation) -> bool:
    """Tell whether the file that people share runs our command at every gate.

    A stranger's settings may have entries that only look like ours.
    """
    command = tuple(entry_command(bridge, "project"))
    whole = {entry.event for entry in shared.entries if entry.command[:-1] == command and not entry.limits}
    return {row.name for row in bridge.describe() if row.gate} <= whole


def missing(bridge: Bridge, installed: Sequence[Installation], listened: Collection[str]) -> list[MissingEvent]:
    """Return each needed event that no entry sends us every time; `listened` are the events that hooks listen to.

    Without any entry nothing is missing: then this process was not started by an installation.
    """
    ours = [each for each in installed if each.entries]
    if not ours:
        return []
    remedy = install_line(bridge, ours[0].target.name)
    whole = {entry.event for each in ours for entry in each.entries if not entry.limits}
    limits = {entry.event: entry.limits for each in ours for entry in each.entries}
    return [
        MissingEvent(event, listeners, limits.get(event, {}), remedy)
        for event, listeners in needed_events(bridge.describe(), listened).items()
        if event not in whole
    ]


def doubled(bridge: Bridge, found: Sequence[Installation]) -> list[DoubledEntries]:
    """Return each two files that run our hooks by different commands, so that events fire twice.

    The agent runs a command once even if two files name it.
    """
    pairs = [(one, other) for index, one in enumerate(found) for other in found[:index] if _fires_twice(one, other)]
    return [
        DoubledEntries(one.target.path, other.target.path, _keep_one(bridge, one.target.name, other.target.name))
        for one, other in pairs
    ]


def _fires_twice(one: Installation, other: Installation) -> bool:
    events = {entry.event for entry in one.entries}
    return any(other.commands(event) and one.commands(event) != other.commands(event) for event in events)


def _keep_one(bridge: Bridge, *names: str) -> str:
    """Return the command that leaves one of two files; the file that people share stays."""
    others = [name for name in names if name != "project"]
    return install_line(bridge, "user") if len(others) == len(names) else uninstall_line(bridge, others[0])


def reading(
    bridge: Bridge, project: str, shorten: Callable[[str], str] = str, environment: Mapping[str, str] = os.environ
) -> list[str]:
    """Return a sentence for each settings file of another agent whose entries of ours this agent runs too.

    An event of both is judged once, by the table of this agent: by its own entry, or else by that of the other agent.
    """
    own = any(each.entries for each in installations(bridge, project, environment))
    by = (
        "its own entries judge each event, and those of the other agent stay silent" if own else "they judge as its own"
    )
    return [
        f"{bridge.name} runs the entries in {shorten(each.target.path)} too: {by}{_limited(each)}"
        for name, files in bridge.reads.items()
        for each in installations(open_bridge(name), project, environment)
        if each.entries and each.target.name in files
    ]


def _limited(each: Installation) -> str:
    """Return the end of a sentence about entries that do not run at each event, as with a matcher for one tool."""
    found = dict.fromkeys(entry.event for entry in each.entries if entry.limits)
    return f"; they do not run each time at {', '.join(found)}" if found else ""


def install_line(bridge: Bridge, target: str) -> str:
    """Return the command that installs into a settings file."""
    return f"{PROGRAM} install {bridge.name} --{target}"


def uninstall_line(bridge: Bridge, target: str) -> str:
    """Return the command that uninstalls from a settings file."""
    return f"{PROGRAM} uninstall {bridge.name} --{target}"


class Presence(Struct, frozen=True):
    """Where to look for an installed agent: its program outside of the project, and the user's settings directory.

    `name`: the name of the program; `directory`: the place where the directory would be, `~` for the home.
    """

    name: str
    directory: str
    program: str | None
    is_used: bool

    def __bool__(self) -> bool:
        """Return whether the agent is here."""
        return self.program is not None or self.is_used

    def absence(self) -> str:
        """Return in words that the agent is not here."""
        return f"no program {self.name} on the PATH, and no {self.directory}"


def presence(bridge: Bridge, project: str, environment: Mapping[str, str] = os.environ) -> Presence:
    """Return where to look for an agent."""
    directory, name = bridge.directory(environment), bridge.facts(project, environment).program
    program = find_program(name, outside=project)
    return Presence(name, directory, program, os.path.isdir(os.path.expanduser(directory)))
