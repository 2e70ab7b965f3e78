"""The hooks and settings that exist around a directory, and whether `git stash` would move them away.

Guards do no I/O, so this module finds these facts, and only for commands that search for files or stash changes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from agent_hooks.settings import PROJECT_DIRECTORY, agent_home
from agent_hooks.trust.contents import paths_in
from agent_hooks.trust.place import find_place

_MOST = 200
# The index of a large repository; a larger one is not read.
_LARGEST = 64 * 1024 * 1024


def control_files(cwd: str) -> tuple[str, ...]:
    """Return the hooks, transformers and settings of the projects around a directory, and of the agent home."""
    homes = [os.path.join(project, PROJECT_DIRECTORY) for project in find_place(cwd).projects]
    found = (path for home in dict.fromkeys((*homes, agent_home())) for path in _existing(home))
    return tuple(path for path, _ in zip(found, range(_MOST), strict=False))


def _existing(home: str) -> Iterable[str]:
    return filter(os.path.lexists, paths_in(home))


def stash_moves(cwd: str) -> tuple[bool, bool]:
    """Return whether `git stash` would move hooks or settings away, and whether `git stash -u` would."""
    place = find_place(cwd)
    paths = [path for project in place.projects for path in _existing(os.path.join(project, PROJECT_DIRECTORY))]
    if not paths:
        return False, False
    known = _tracked(place.top)
    if known is None:
        return False, True
    states = [known.get(os.fsencode(os.path.relpath(path, place.top))) for path in paths]
    changed = any(state is not None and state != _state(path) for state, path in zip(states, paths, strict=True))
    return changed, None in states


def _state(path: str) -> tuple[int, int]:
    try:
        found = os.lstat(path)
    except OSError:
        return 0, 0
    return int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF


def _tracked(top: str) -> dict[bytes, tuple[int, int]] | None:
    """Return time and size of the files in git's index below `.agent`, `None` when the index cannot be read here."""
    try:
        path = os.path.join(top, ".git", "index")
        if os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            return _entries(file.read())
    except (OSError, struct.error, IndexError, ValueError):
        return None


def _entries(index: bytes) -> dict[bytes, tuple[int, int]] | None:
    """Read the entries of git's index; https://git-scm.com/docs/index-format has the layout."""
    mark, version, number = struct.unpack(">4sII", index[:12])
    if mark != b"DIRC" or version not in (2, 3):
        return None
    found: dict[bytes, tuple[int, int]] = {}
    at = 12
    for _ in range(number):
        begin = at
        modified, size = (
            struct.unpack(">I", index[at + 8 : at + 12])[0],
            struct.unpack(">I", index[at + 36 : at + 40])[0],
        )
        flags = struct.unpack(">H", index[at + 60 : at + 62])[0]
        # An extended entry of version 3 has two more bytes of flags.
        at += 64 if flags & 0x4000 else 62
        end = index.index(b"\0", at)
        if b".agent/" in index[at:end]:
            found[index[at:end]] = (modified, size)
        # Entries end with one to eight zeros, so that their length is a multiple of eight.
        at = begin + ((end - begin) // 8 + 1) * 8
    return found
