"""Commands that people keep as texts: `/review src` sends `commands/review.md` of the agent home or of the project.

They are texts that the person sends, so they need no approval; nothing in them is run.  The files of Claude Code count
too.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_hooks.host.kept_texts import directories_of, parted, read_kept, value
from agent_hooks.settings import COMMANDS_DIRECTORY
from agent_hooks.storage.files import StorageError

LONGEST = 100_000
"""The bytes of one file."""
# The most files of one directory.
_MOST = 500
_NAME = re.compile(r"([a-z][a-z0-9_-]*)\.md")
# `$ARGUMENTS`, `$@` and `$1` as in Claude Code, Codex and pi.
_PLACE = re.compile(r"\$(ARGUMENTS\b|@|[1-9])")


class PromptFiles:
    """The files of one session: `PromptFiles(home, top, cwd, hide)`; the arguments are those of `Instructions`."""

    def __init__(self, home: str, top: str, cwd: str, hide: Callable[[str], str]) -> None:
        self._top = top
        self._hide = hide
        self._own, self._projects = directories_of(COMMANDS_DIRECTORY, home, top, cwd)

    def found(self) -> dict[str, str]:
        """Return the paths of the files by the names of their commands, each with its slash."""
        paths: dict[str, str] = {}
        for directory in (*self._own, *self._projects):
            for name in _names(directory):
                paths.setdefault(f"/{name}", os.path.join(directory, f"{name}.md"))
        return paths

    def about(self, path: str) -> str:
        """Return the description in the head of a file, else its first words, else its path."""
        try:
            head, text = parted(self._text(path))
        except StorageError:
            return path
        return value(head, "description") or next(iter(text.split("\n")), path)

    def message(self, path: str, argument: str) -> str:
        """Return the text of a file with an argument in its places, at the end where it has none.

        Raises `StorageError` when the file cannot be read.
        """
        _, text = parted(self._text(path))
        try:
            words = shlex.split(argument)
        except ValueError:
            words = argument.split()

        def given(place: re.Match[str]) -> str:
            if not place[1].isdecimal():
                return argument
            return words[int(place[1]) - 1] if int(place[1]) <= len(words) else ""

        if _PLACE.search(text):
            return _PLACE.sub(given, text)
        return f"{text}\n\n{argument}" if argument else text

    def _text(self, path: str) -> str:
        data = read_kept(path, self._top, LONGEST + 1, own=os.path.dirname(path) in self._own)
        if len(data) > LONGEST:
            raise StorageError(f"{path} has more than {LONGEST:,} bytes")
        return self._hide(data.decode("utf-8", "replace")).replace("\r\n", "\n").strip()


def _names(directory: str) -> Iterator[str]:
    try:
        files = sorted(os.listdir(directory))[:_MOST]
    # There is no such directory, or it cannot be read.
    except OSError:
        return
    for file in files:
        if (match := _NAME.fullmatch(file)) and Path(directory, file).is_file():
            yield match[1]
