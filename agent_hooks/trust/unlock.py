"""Unlock hooks for the agent for a limited time, and tell afterwards which files have changed.

The state holds the contents of the files at its start, so that the changes can be shown as diffs at its end.
"""

from __future__ import annotations

import difflib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct

from agent_hooks.errors import AgentHooksError
from agent_hooks.settings import PROJECT_DIRECTORY, SETTINGS_FILE, agent_home
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, open_regular, write_atomically
from agent_hooks.trust.place import Place
from agent_hooks.trust.unlocked import LONGEST, Unlocked, boot_id, read_state, state_path

_FOLDERS = ("hooks", "transformers")
_FILES = (SETTINGS_FILE, "command_intercept.yaml")
# The contents of a larger file are not kept; its hash shows a change.
_LARGEST = 1024 * 1024
_HASHED = "sha256:"


class Edit(Struct, frozen=True):
    """A file that was changed while hooks were unlocked, and the change as a unified diff."""

    path: str
    diff: str


def begin(place: Place, seconds: float, *, own: bool = False) -> Unlocked:
    """Unlock the hooks and settings of a place, and with `own` those of the agent home.

    Raises `AgentHooksError` when the time is not between 1 second and the longest, or another project is unlocked.
    """
    if not 1 <= seconds <= LONGEST:
        raise AgentHooksError(f"hooks are unlocked for 1 second to {LONGEST / 3600:g} hours, for example 15m")
    former = read_state(state_path())
    directories = tuple(os.path.join(each, PROJECT_DIRECTORY) for each in dict.fromkeys((*place.projects, place.top)))
    home = agent_home()
    directories = tuple(each for each in directories if os.path.realpath(each) != os.path.realpath(home))
    directories += (home,) if own else ()
    if not directories:
        raise AgentHooksError(
            "the home directory is no project; to unlock your own hooks: agent-hooks unlock 15m --own"
        )
    if former is not None and (former.project != place.top or former.directories != directories):
        raise AgentHooksError(f"{former.project} has been unlocked before; first: agent-hooks unlock --end")
    now = time.time()
    before = former.before if former is not None else dict(_contents(directories))
    started = time.monotonic()
    state = Unlocked(place.top, directories, now, now + seconds, started + seconds, boot_id(), before)
    write_atomically(state_path(), msgspec.json.encode(state), secret=True)
    return state


def edits(state: Unlocked) -> list[Edit]:
    """Return the files that differ from their contents at the start, by path."""
    now = dict(_contents(state.directories))
    changed = sorted(path for path in {*state.before, *now} if state.before.get(path) != now.get(path))
    return [Edit(path, _diff(path, state.before.get(path), now.get(path))) for path in changed]


def end() -> tuple[Unlocked, list[Edit]] | None:
    """Lock the hooks again; return the former state and its edits, `None` when nothing was unlocked."""
    path = state_path()
    state = read_state(path)
    found = None if state is None else (state, edits(state))
    with suppress(FileNotFoundError):
        os.unlink(path)
    return found


def _contents(directories: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the paths and contents of the hooks and settings in `.agent` directories."""
    for directory in directories:
        for name in _FILES:
            yield from _content(os.path.join(directory, name))
        for name in _FOLDERS:
            for folder, inner, names in os.walk(os.path.join(directory, name)):
                inner[:] = sorted(each for each in inner if each != "__pycache__")
                for each in sorted(names):
                    yield from _content(os.path.join(folder, each))


def _content(path: str) -> Iterator[tuple[str, str]]:
    """Yield a path and its contents, one character per byte; the target of a link, or a hash, where that is shorter."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            yield path, f"link to {os.readlink(path)}"
        elif stat.S_ISREG(found.st_mode):
            with open_regular(path, path) as file:
                data = file.read()
            yield path, data.decode("latin-1") if len(data) <= _LARGEST else f"{_HASHED}{sha256(data)}"
    except (OSError, StorageError):
        # A file that is missing or unreadable has no contents.
        return


def _diff(path: str, before: str | None, after: str | None) -> str:
    names = ("/dev/null" if before is None else path), ("/dev/null" if after is None else path)
    lines = difflib.unified_diff(_lines(before), _lines(after), *names, lineterm="")
    return "\n".join(lines)


def _lines(text: str | None) -> list[str]:
    return (text or "").encode("latin-1", "replace").decode("utf-8", "replace").splitlines()
