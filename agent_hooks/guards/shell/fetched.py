"""The files and directories that a command line has fetched from elsewhere."""

from __future__ import annotations

from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.words import Word

TREE = "/**"
"""The end of the key under which the texts of a shell hold a whole fetched directory."""


def fetched(command: Command, word: Word) -> bool:
    """Return whether a word names a file that was fetched, or that lies in a fetched directory."""
    files, path = command.shell.files, command.path(word)
    known = files.get(path)
    if known is not None and known.taint & {"saved-download", "download"}:
        return True
    return any(path.startswith(key.removesuffix(TREE) + "/") for key in files if key.endswith(TREE))
