"""The instructions for agents that people keep in files: `AGENTS.md`, or `CLAUDE.md` where there is none.

The file in the agent home comes first, then those of the project, from its top down to the agent's directory.  They are
texts and not code, so they need no approval, as little as a source file that the model reads.  A project from elsewhere
may bring links along, so a file counts only where it lies in the project.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import PurePath

from agent_hooks.host.kept_texts import read_kept
from agent_hooks.settings import INSTRUCTIONS_FILE
from agent_hooks.storage.files import StorageError

NAMES = (INSTRUCTIONS_FILE, "CLAUDE.md")
"""The names of the file, in the order in which they count in a directory."""
LONGEST = 32_768
"""The bytes of one file that the model gets, as in Codex (`project_doc_max_bytes`)."""


class Instructions:
    """The files of one agent: `Instructions(home, top, cwd, hide, warn)`.

    `home`: the agent home; `top`, `cwd`: the top of the project, and the agent's directory in it; `hide`: takes the
    secrets out of a text; `warn`: gets a sentence about each file that is not read, or not read whole, once.
    """

    def __init__(
        self, home: str, top: str, cwd: str, hide: Callable[[str], str], warn: Callable[[str], object]
    ) -> None:
        self._home = home
        self._top = top
        self._cwd = cwd
        self._hide = hide
        self._warn = warn
        self._warned: set[str] = set()

    def files(self) -> list[str]:
        """Return the paths of the files that are there, in the order in which the model gets them."""
        own = os.path.join(self._home, INSTRUCTIONS_FILE)
        found = [own] if os.path.lexists(own) else []
        for directory in self._directories():
            names = (os.path.join(directory, name) for name in NAMES)
            found += [path for path in names if os.path.lexists(path)][:1]
        return found

    def read(self) -> list[str]:
        """Return the text of each file, with its path above it."""
        found = []
        for path in self.files():
            try:
                text = self._text(path)
            except StorageError as exc:
                self._say(f"{exc}; the model does not get it")
                continue
            if text.strip():
                found.append(f"Instructions of {path}:\n\n{text}")
        return found

    def _directories(self) -> Iterator[str]:
        """Yield the directories of the project, its top first."""
        inside = PurePath(os.path.relpath(self._cwd, self._top)).parts
        if ".." in inside:
            yield self._cwd
            return
        here = self._top
        yield here
        for part in inside:
            here = os.path.join(here, part)
            yield here

    def _text(self, path: str) -> str:
        data = read_kept(path, self._top, LONGEST + 1, own=os.path.dirname(path) == self._home)
        if len(data) > LONGEST:
            self._say(f"{path} has more than {LONGEST:,} bytes; the model gets these")
        return self._hide(data[:LONGEST].decode("utf-8", "replace"))

    def _say(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)
