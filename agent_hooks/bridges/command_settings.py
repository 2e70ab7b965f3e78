"""The half of the engine for hook commands that handles an agent's settings: it adds, finds and removes our entries."""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.installation import OURS, PROCESS, Address, EventRow, Hindrance, Installed
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.bridges.tables import Layout

MARK = f"{OURS}:"
"""The beginning of the text by which an entry of ours is known, where entries have a text for persons."""
OR_DENY = " || sh -c 'echo agent-hooks failed >&2; exit 2' || exit 2"
"""The end of a gate's shell command: a Python that is missing, a crash and a signal deny, as a denial of ours does.

Some agents run the tool after an exit code of 2 without a text on stderr.  The last part is for a shell that cannot start
another program.
"""
_OLD_OR_DENY = OR_DENY.removesuffix(" || exit 2")
OR_SILENCE = " || exit 0"
"""The end of the shell command of an event that hooks only see or prolong.

Python exits with 2 if its file is missing.  At a stop, agents take that for the wish to go on, some of them for ever.
"""
# At the beginning of the command of a result: the shell becomes the program and costs no process.  A failure there keeps
# the result from the model in some agents, which is right, because no hook has seen it.
_BECOME = "exec "
# Python takes an empty file for a program that ends well.
_WHOLE = ("test", "-s")
# An integer in JSON may be larger than any float.
_LARGEST = sys.float_info.max


class Found(Struct, frozen=True):
    """An entry in the settings, and the group that it stands in.

    `group`, `entry`: the data; `at`: the position of the group, and of the entry in it.
    """

    event: str
    group: Mapping[str, Any]
    entry: Mapping[str, Any]
    at: tuple[int, int]


class CommandSettings(Bridge, ABC):
    """A bridge whose settings have the form that `layout` describes, as data: the text is the business of `installs`.

    `title`: the agent's name, as its maker writes it.
    """

    title: str
    layout: Layout

    def settings_files(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the paths of the settings files that the agent has."""
        variable, otherwise = self.layout.home
        home = environment.get(variable) or otherwise
        return {target: path.replace("{home}", home) for target, path in self.layout.files.items()}

    def install(
        self,
        settings: Mapping[str, Any],
        command: Sequence[str],
        events: Collection[str],
        address: Address | None = None,
    ) -> dict[str, Any]:
        """Return the settings with our entries; everything else keeps its place.  Raises `BridgeError`."""
        hooks = dict(_hooks(settings))
        for row in self.describe():
            if row.name in events:
                hooks[row.name] = self._with_ours(hooks.get(row.name, []), self._entry(row, command, address))
        return {**self.layout.top, **settings, "hooks": hooks}

    def uninstall(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without our entries, and without groups and keys that held nothing else.

        Raises `BridgeError`.
        """
        hooks = _hooks(settings)
        left = {}
        for event, groups in hooks.items():
            kept = [each for group in groups for each in self._left_of(group)]
            if kept or not groups:
                left[event] = kept
        if hooks and not left:
            rest = {key: value for key, value in settings.items() if key != "hooks"}
            return {} if rest == self.layout.top else rest
        return {key: left if key == "hooks" else value for key, value in settings.items()}

    def installed(self, settings: Mapping[str, Any]) -> Sequence[Installed]:
        """Return our entries; parts of the settings that have a wrong form are skipped."""
        return [self._installed(found) for found in self.found(settings)]

    def found(self, settings: Mapping[str, Any]) -> Iterator[Found]:
        """Yield our entries with their places; parts of the settings that have a wrong form are skipped."""
        return (found for found in self.entries(settings) if self.is_ours(found.entry))

    def entries(self, settings: Mapping[str, Any]) -> Iterator[Found]:
        """Yield all entries with their places; parts of the settings that have a wrong form are skipped."""
        hooks = settings.get("hooks")
        for event, groups in hooks.items() if isinstance(hooks, dict) else ():
            for number, group in enumerate(groups if isinstance(groups, list) else ()):
                for index, entry in enumerate(self._entries(group)):
                    if isinstance(entry, Mapping):
                        yield Found(event, group, entry, (number, index))

    def hindrances(
        self, path: str, found: Mapping[str, Any], project: str, posted: Collection[str] = ()
    ) -> Sequence[Hindrance]:
        """Return the setting that switches hooks off, if the file has it."""
        value: Any = found
        for key in self.layout.off:
            value = value.get(key) if isinstance(value, Mapping) else None
        if not self.layout.off or value is not self.layout.off_value:
            return []
        return [Hindrance(f"{'.'.join(self.layout.off)} is {'on' if value else 'off'}: {self.title} runs no hook")]

    # ---- one entry

    def _entry(self, row: EventRow, command: Sequence[str], address: Address | None) -> dict[str, Any]:
        layout = self.layout
        entry = {**layout.entry, layout.command: self._line(row, [*command, row.name])}
        if row.timeout is not None:
            entry[layout.timeout] = row.timeout * self._units()
        if row.gate:
            entry |= layout.gate
        return {**entry, layout.mark: self._mark()} if layout.mark else entry

    def _mark(self) -> str:
        return f"{MARK} your hooks (to remove: agent-hooks uninstall {self.name}, or delete each entry with this text)"

    def _line(self, row: EventRow, words: Sequence[str]) -> str:
        """Return the line that a shell runs."""
        # Imported here, because an event needs no settings.
        import shlex

        line = shlex.join(words)
        # The shell's parent is the agent.
        process = f"{PROCESS}=$PPID " if self.process_variable == PROCESS else ""
        file = words[-2] if len(words) > 1 else ""
        whole = f"{shlex.join([*_WHOLE, file])} && " if file.endswith(".py") else ""
        if row.gate and self.layout.exits:
            return f"{whole}{process}{line}{OR_DENY}"
        return f"{whole}{process}{_BECOME}{line}" if "redaction" in row.feeds else f"{process}{line}{OR_SILENCE}"

    def _units(self) -> int:
        return 1000 if self.layout.unit == "ms" else 1

    def is_ours(self, entry: Any) -> bool:
        """Return whether an entry is ours: by its text for persons, or by the command that it runs."""
        if not isinstance(entry, dict):
            return False
        mark = self.layout.mark
        if mark and str(entry.get(mark, "")).startswith(MARK):
            return True
        words = self._command(entry)
        file = f"/bridges/agent-hooks-{self.name}.py"
        return ("bridge", self.name) in pairwise(words) or any(word.endswith(file) for word in words)

    def _command(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the words of an entry's command line, without the words for the shell."""
        line = str(entry.get(self.layout.command, ""))
        args = entry.get(self.layout.args) if self.layout.args else None
        if isinstance(args, list):
            return (line, *map(str, args))
        import shlex

        try:
            words = shlex.split(line.removesuffix(OR_DENY).removesuffix(_OLD_OR_DENY).removesuffix(OR_SILENCE))
            # The test of the file, its path and `&&`.
            words = words[4:] if tuple(words[:2]) == _WHOLE else words
            for word in (f"{PROCESS}=$PPID", _BECOME.strip()):
                words = words[1:] if words[:1] == [word] else words
            return tuple(words)
        except ValueError:
            # The line of another program, with a quotation mark that has no end.
            return tuple(line.split())

    def _installed(self, found: Found) -> Installed:
        entry = found.entry
        return Installed(
            found.event,
            self._command(entry),
            fails_closed=self._fails_closed(entry),
            timeout=self._seconds(entry),
            limits=self._limits(found.group, entry),
        )

    def _fails_closed(self, entry: Mapping[str, Any]) -> bool:
        gate = self.layout.gate
        # Such keys also cover a timeout, which the end of the line does not.
        if gate:
            return all(entry.get(key) == value for key, value in gate.items())
        return self.layout.exits and str(entry.get(self.layout.command, "")).endswith((OR_DENY, _OLD_OR_DENY))

    def _seconds(self, entry: Mapping[str, Any]) -> float | None:
        given = entry.get(self.layout.timeout)
        if not isinstance(given, int | float) or isinstance(given, bool) or abs(given) > _LARGEST:
            return None
        return given / self._units()

    def _limits(self, group: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings, by key, that keep an entry from running at each such event."""
        matcher = group.get("matcher")
        return {} if matcher in self.layout.every_tool else {"matcher": matcher}

    # ---- the groups of an event

    def _entries(self, group: Any) -> list[Any]:
        if self.layout.flat:
            return [group]
        entries = group.get("hooks") if isinstance(group, dict) else None
        return entries if isinstance(entries, list) else []

    def _has_ours(self, group: Any) -> bool:
        return any(map(self.is_ours, self._entries(group)))

    def _left_of(self, group: Any) -> list[Any]:
        """Return a group without our entries, or nothing if it held only those.  A value that is no group stays."""
        if not self._has_ours(group):
            return [group]
        kept = [entry for entry in self._entries(group) if not self.is_ours(entry)]
        return [{**group, "hooks": kept}] if kept else []

    def _with_ours(self, groups: Sequence[Any], entry: dict[str, Any]) -> list[Any]:
        """Return an event's groups with our entry once.

        It takes the place of an earlier entry of ours in a group that matches every tool.  Without one, it gets a group
        of its own.
        """
        done: list[Any] = []
        placed = False
        for group in groups:
            if placed or not self._has_ours(group) or group.get("matcher") not in self.layout.every_tool:
                done += self._left_of(group)
                continue
            done.append(self._renewed(group, entry))
            placed = True
        if placed:
            return self._ours_first(done) if self.layout.first else done
        own = entry if self.layout.flat else {"hooks": [entry]}
        return [own, *done] if self.layout.first else [*done, own]

    def _renewed(self, group: Mapping[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
        if self.layout.flat:
            return entry
        first = next(each for each in group["hooks"] if self.is_ours(each))
        kept = [entry if each is first else each for each in group["hooks"] if each is first or not self.is_ours(each)]
        return {**group, "hooks": kept}

    def _ours_first(self, groups: Sequence[Any]) -> list[Any]:
        return sorted(groups, key=lambda group: not self._has_ours(group))


def _hooks(settings: Mapping[str, Any]) -> dict[str, list[Any]]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise BridgeError("key 'hooks' must be an object of lists")
    return hooks
