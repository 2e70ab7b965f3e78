"""The skills that people keep as files: `skills/NAME/SKILL.md` says how to do a kind of task.

The model gets the name, the description and the path of each, and reads the file when a task needs it.  Skills are texts
like instructions, so they need no approval; a script of theirs runs by a tool call, which hooks and guards judge.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from agent_hooks.host.kept_texts import directories_of, parted, read_kept, value
from agent_hooks.settings import SKILLS_DIRECTORY
from agent_hooks.storage.files import StorageError

FILE = "SKILL.md"
"""The name of the file in the directory of a skill, as in Claude Code, Codex and pi."""
LONGEST_DESCRIPTION = 1_024
"""The characters of a description that the model gets, as in the format of Agent Skills (agentskills.io)."""
MOST = 100
"""The skills that the model gets."""
_BEGINNING = (
    "Skills are files that say how to do a kind of task. When a task fits a description, read the file first, and follow "
    "it. Relative paths in it count from its directory."
)
# The bytes of a file that are read for its head.
_HEAD = 16_384


class Skills:
    """The skills of one agent: `Skills(home, top, cwd, hide)`.

    `home`: the agent home; `top`, `cwd`: the top of the project, and the agent's directory in it; `hide`: takes the
    secrets out of a text.  Of one name, the person's counts before the project's.
    """

    def __init__(self, home: str, top: str, cwd: str, hide: Callable[[str], str]) -> None:
        self._top = top
        self._hide = hide
        self._own, self._projects = directories_of(SKILLS_DIRECTORY, home, top, cwd)

    def found(self) -> dict[str, str]:
        """Return the paths of the files by the names of the skills."""
        paths: dict[str, str] = {}
        for directory in (*self._own, *self._projects):
            for name in _names(directory):
                paths.setdefault(name, os.path.join(directory, name, FILE))
        return dict([*paths.items()][:MOST])

    def read(self) -> list[str]:
        """Return the text about all skills for the model; nothing without one."""
        lines = [f"- {name}: {about} ({path})" for name, path in self.found().items() if (about := self._about(path))]
        return ["\n".join([_BEGINNING, "", *lines])] if lines else []

    def _about(self, path: str) -> str:
        """Return the description of a skill; empty for a file that has none or is not read."""
        try:
            own = os.path.dirname(os.path.dirname(path)) in self._own
            data = read_kept(path, self._top, _HEAD, own=own)
        except StorageError:
            return ""
        head, _ = parted(data.decode("utf-8", "replace").replace("\r\n", "\n").lstrip())
        return self._hide(value(head, "description"))[:LONGEST_DESCRIPTION]


def _names(directory: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(directory))
    # There is no such directory, or it cannot be read.
    except OSError:
        return
    # A name with a line break could pass for another line of the text.
    yield from (name for name in names if name.isprintable() and os.path.isfile(os.path.join(directory, name, FILE)))
