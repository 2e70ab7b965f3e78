"""The installations of a bridge: the settings files of the other agent, our entries in them, and missing entries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence

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


class Installation(Struct, frozen=True):
    """A settings file and our entries in it; with `problem`, the file cannot be read, and the text says why."""

    target: Target
    entries: tuple[Installed, ...] = ()
    problem: str = ""

    def commands(self, event: str) -> set[tuple[str, ...]]:
        """Return the commands of our entries for an event."""
        return {entry.command for entry in self.entries if entry.event == event}


class Problem(Struct, frozen=True):
    """A problem of installations, and the command that mends it."""

    text: str
    remedy: str


def entry_command(bridge: Bridge, target: str) -> list[str]:
    """Return the command of an entry; the event's name comes after it.

    In a file that people share, the command names no path of this machine; in the others it names the generated file,
    which `write_stub` writes.
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


def installations(bridge: Bridge, project: str, environment: Mapping[str, str] = os.environ) -> list[Installation]:
    """Return the settings files that hold entries of ours or cannot be read; each file once."""
    # Imported here, because most events of an agent do not read settings.
    from agent_hooks.installs.edits import read_settings

    found: dict[str, Installation] = {}
    for target in targets(bridge, project, environment).values():
        try:
            each = Installation(target, tuple(bridge.installed(read_settings(target.path)[1])))
        except SettingsError as exc:
            each = Installation(target, problem=str(exc))
        real = os.path.realpath(target.path)
        if (each.entries or each.problem) and real not in found:
            found[real] = each
    return list(found.values())


def at_target(found: Sequence[Installation], target: Target) -> Installation | None:
    """Return the installation in a settings file; in the home directory, two targets can be one file."""
    path = os.path.realpath(target.path)
    return next((each for each in found if os.path.realpath(each.target.path) == path), None)


def missing(bridge: Bridge, installed: Sequence[Installation], listened: Collection[str]) -> list[Problem]:
    """Return a problem for each needed event that no entry sends us; `listened` are the events that hooks listen to.

    Without any entry there is no problem: then this process was not started by an installation.
    """
    ours = [each for each in installed if each.entries]
    if not ours:
        return []
    remedy = install_line(bridge, ours[0].target.name)
    whole = {entry.event for each in ours for entry in each.entries if not entry.limit}
    limits = {entry.event: entry.limit for each in ours for entry in each.entries}
    problems = []
    for event, listeners in needed_events(bridge.describe(), listened).items():
        if event not in whole:
            where = f"is installed with {limits[event]} only" if event in limits else "is not installed"
            needs = "needs" if len(listeners) == 1 else "need"
            needed = f", which {' and '.join(listeners)} {needs}," if listeners else ""
            problems.append(Problem(f"{event}{needed} {where}", remedy))
    return problems


def doubled(bridge: Bridge, found: Sequence[Installation], shorten: Callable[[str], str] = str) -> list[Problem]:
    """Return a problem for each two files that run our hooks by different commands, so that events fire twice.

    The agent runs a command once even if two files name it.  `shorten` shortens a path for the text.
    """
    pairs = [(one, other) for index, one in enumerate(found) for other in found[:index] if _fires_twice(one, other)]
    return [
        Problem(
            f"events fire twice here: {shorten(one.target.path)} and {shorten(other.target.path)} run your hooks by "
            "different commands",
            _keep_one(bridge, one.target.name, other.target.name),
        )
        for one, other in pairs
    ]


def _fires_twice(one: Installation, other: Installation) -> bool:
    events = {entry.event for entry in one.entries}
    return any(other.commands(event) and one.commands(event) != other.commands(event) for event in events)


def _keep_one(bridge: Bridge, *names: str) -> str:
    """Return the command that leaves one of two files; the file that people share stays."""
    if "project" not in names:
        return install_line(bridge, "user")
    return uninstall_line(bridge, next(name for name in names if name != "project"))


def install_line(bridge: Bridge, target: str) -> str:
    """Return the command that installs into a settings file."""
    return f"{PROGRAM} install {bridge.name} --{target}"


def uninstall_line(bridge: Bridge, target: str) -> str:
    """Return the command that uninstalls from a settings file."""
    return f"{PROGRAM} uninstall {bridge.name} --{target}"
