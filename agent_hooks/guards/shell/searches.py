"""The trees that lose their files when the files that a search finds are removed."""

from __future__ import annotations

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.words import Word


def lost_root(command: Command, roots: list[Word], *, named: bool, narrowed: bool) -> Word | None:
    """Return the first tree that would lose all its files if the files that are found were removed."""
    # Empty files and directories are no loss.
    words = command.argv
    empty = "-empty" in words or any(words[at : at + 2] == ["-size", "0"] for at in range(len(words)))
    for root in roots:
        path = command.path(root)
        directories = command.interpreter.directories
        if directories.in_temp(path) or (path in directories.temp and narrowed):
            continue
        outside = UNKNOWN in path or not (path == directories.project or directories.in_project(path))
        if named and not outside:
            continue
        if outside and (named or narrowed) and not command.is_root(root):
            continue
        if narrowed and (empty or not command.is_root(root)):
            continue
        if not directories.removable(path, command.level):
            return root
    return None
