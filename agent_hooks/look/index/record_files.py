"""The record files of a directory, as they are now.

A look at ten thousand files takes longer than the update of a page may.  So between two looks at all of them, only those
that were written a short time ago are looked at: a process writes to its own file alone, and the others have ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from agent_hooks.look.index.files import Found
from agent_hooks.records.files import parse_name

KIND = "record"
"""The kind of the files."""
# Seconds from one look at all files to the next.
_WHOLE = 10.0
# Seconds since its last line for which a file is looked at each time.
_RECENT = 3600.0


class RecordFiles:
    """The record files of a directory; `clock` returns seconds, which never go back."""

    def __init__(self, directory: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._found: list[Found] = []
        self._changed = -1
        self._looked = 0.0

    def now(self) -> list[Found]:
        """Return the files, the oldest start first."""
        try:
            # It changes with each file that is added, renamed or removed.
            changed = os.stat(self._directory).st_mtime_ns
        except OSError:
            return []
        if changed != self._changed or self._clock() >= self._looked + _WHOLE:
            self._changed, self._looked = changed, self._clock()
            self._found = list(_all(self._directory))
        else:
            since = time.time() - _RECENT
            self._found = [again for each in self._found if (again := _again(each, since)) is not None]
        return self._found


def _all(directory: str) -> Iterator[Found]:
    try:
        with os.scandir(directory) as entries:
            named = [(parsed[2], each) for each in entries if (parsed := parse_name(each.name)) is not None]
    except OSError:
        return
    for _, each in sorted(named, key=lambda pair: (pair[0], pair[1].name)):
        try:
            status = each.stat(follow_symlinks=False)
        except OSError:
            continue
        if each.is_file(follow_symlinks=False):
            yield _found(each.path, status)


def _again(known: Found, since: float) -> Found | None:
    if known.written < since:
        return known
    try:
        return _found(known.path, os.lstat(known.path))
    except OSError:
        return None


def _found(path: str, status: os.stat_result) -> Found:
    return Found(path, KIND, status.st_dev, status.st_ino, status.st_size, status.st_mtime)
