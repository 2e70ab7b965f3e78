"""Remember the rights of files that not everybody may read, so that none of them comes back open to others.

git keeps only whether a file can be executed.  The file `rights` of a store has a history for each path that was ever
closed to the group or to others: the moments of its snapshots, and its rights there.  Every other path was open.  Before
the file was begun, nothing is known.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress

from msgspec import Struct

from agent_hooks.checkpoints.json_text import decoded, encoded
from agent_hooks.storage.files import StorageError, read_regular, write_atomically

PRIVATE = 0o600
"""The rights of a file whose former rights are not known."""
_NAME = "rights"
_LONGEST = 1 << 27
# The rights to read of the group and of others.
_OPEN = 0o044


class Rights(Struct):
    """The rights that the files of a working tree had.

    `since`: when they were begun to be noted, in Unix seconds; `files`: the history of each path that was ever closed.
    """

    since: float
    files: dict[str, list[tuple[float, int]]]

    def at(self, path: str, moment: float) -> int | None:
        """Return the rights that a file had at a moment, `None` if it was open to all readers."""
        if moment < self.since:
            return PRIVATE
        history = self.files.get(path)
        if not history:
            return None
        # A clock that was set back must not open a file: the first rights count before their moment too.
        return next((rights for when, rights in reversed(history) if when <= moment), history[0][1])


def are_known(store: str) -> bool:
    """Tell whether the file of rights is there."""
    return os.path.isfile(os.path.join(store, _NAME))


def read_rights(store: str) -> Rights:
    """Return the rights in a store; when its file cannot be read, no file counts as open."""
    return _read(store) or Rights(float("inf"), {})


def note_rights(store: str, top: str, paths: Iterable[str]) -> None:
    """Note the present rights of files that are saved; raises `OSError` or `StorageError`."""
    now = time.time()
    changed = not are_known(store)
    noted = Rights(now, {}) if changed else _read(store)
    if noted is None:
        # A damaged file is begun anew with the next snapshot, which saves all files again.
        os.unlink(os.path.join(store, _NAME))
        return
    for path in paths:
        rights = _rights_of(os.path.join(top, path))
        history = noted.files.get(path)
        if rights is None or (not history and rights & _OPEN == _OPEN):
            continue
        if not history or history[-1][1] != rights:
            noted.files.setdefault(path, []).append((now, rights))
            changed = True
    if changed:
        _write(store, noted)


def forget_rights(store: str, top: str, limit: float) -> None:
    """Forget the rights of files that are gone and were noted before `limit`, in Unix seconds."""
    known = _read(store)
    if known is None:
        return
    kept = {
        path: history
        for path, history in known.files.items()
        if (history and history[-1][0] >= limit) or os.path.lexists(os.path.join(top, path))
    }
    if len(kept) < len(known.files):
        with suppress(OSError, StorageError):
            _write(store, Rights(known.since, kept))


def _rights_of(full: str) -> int | None:
    try:
        found = os.lstat(full)
    except OSError:
        return None
    return stat.S_IMODE(found.st_mode) & 0o777 if stat.S_ISREG(found.st_mode) else None


def _read(store: str) -> Rights | None:
    path = os.path.join(store, _NAME)
    try:
        return decoded(read_regular(path, path, _LONGEST), Rights)
    except (OSError, StorageError, ValueError, RecursionError):
        return None


def _write(store: str, rights: Rights) -> None:
    write_atomically(os.path.join(store, _NAME), encoded(rights), secret=True)
