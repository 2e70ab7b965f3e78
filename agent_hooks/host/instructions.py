"""Instructions, skills and commands: the texts that users keep in files for the model.

- Instructions are `AGENTS.md`, or `CLAUDE.md` where it is missing: the file of the agent home, then the files of the
  project from its top down to the agent's directory.
- A skill is `skills/NAME/SKILL.md`.  The model gets its name, description and path, and reads the file for a task that
  needs it.

The user's files come first, so that no project takes their names.  They are texts and not code, so they need no approval.
Hooks and guards judge a script of a skill, because it runs by a tool call.  A project from elsewhere may bring links
along, so a file of a project applies only if it is inside of the project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import PurePath

from agent_hooks.guards.sensitive import sensitive
from agent_hooks.settings import INSTRUCTIONS_FILE, PROJECT_DIRECTORY, SKILLS_DIRECTORY
from agent_hooks.storage.files import StorageError, check_regular, read_regular, refusing

_CLAUDE = ".claude"
_HEAD = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)


def directories_of(name: str, home: str, top: str, cwd: str) -> tuple[list[str], list[str]]:
    """Return the directories called `name` of the person, and those of the project; those of Claude Code count too.

    `home`: the agent home; `top`, `cwd`: the top of the project, and the agent's directory in it.
    """
    own = [os.path.join(each, name) for each in (home, os.path.join(os.path.expanduser("~"), _CLAUDE))]
    tops = dict.fromkeys((cwd, top))
    return own, [os.path.join(each, inner, name) for each in tops for inner in (PROJECT_DIRECTORY, _CLAUDE)]


def read_kept(path: str, top: str, most: int, *, own: bool) -> bytes:
    """Return the first bytes of a file; `own`: the person's, which may be a link to anywhere.

    Raises `StorageError` when it cannot be read, or is a link out of the project or to a file with secrets.
    """
    with refusing("read", path):
        check_regular(os.stat(path), path)
    if not own and not inside(path, top):
        raise StorageError(f"{path} is a link out of {top}")
    real = os.path.realpath(path)
    if not own and sensitive(real) and not sensitive(os.path.abspath(path)):
        raise StorageError(f"{path} is a link to {real}, which holds secrets")
    return read_regular(path, path, most)


def inside(path: str, top: str) -> bool:
    """Return whether a file lies below a directory, with all links followed."""
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(top), ""))


def parted(text: str) -> tuple[str, str]:
    """Return the head of a text, empty where it has none, and the rest."""
    match = _HEAD.match(text)
    return (match[1], text[match.end() :].strip()) if match else ("", text)


def value(head: str, key: str) -> str:
    """Return the value of a key on one line, without its quotes; empty where it is missing.

    A value of several lines, which begins with `>` or `|`, is its first paragraph as one line.
    """
    match = re.search(rf"^{re.escape(key)}:[ \t]*(.*(?:\n[ \t]+.+)*)", head, re.MULTILINE)
    if match is None:
        return ""
    return " ".join(match[1].lstrip("|>-+ \t").split()).strip("\"'")


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
_HEAD_BYTES = 16_384


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
            data = read_kept(path, self._top, _HEAD_BYTES, own=own)
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
