"""Removes old record files, and those of a session that the person wants forgotten; a tombstone in the index says so."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import datetime
from math import inf
from typing import Literal

from agent_hooks.errors import AgentHooksError
from agent_hooks.records.files import INDEX, files_of, record_files
from agent_hooks.records.index import Index
from agent_hooks.records.lines import Removed, Tombstone
from agent_hooks.records.reading import decode_line, name_of_session, read_lines, tail
from agent_hooks.records.writer import is_written
from agent_hooks.storage.digests import line_hash
from agent_hooks.storage.files import StorageError

# Its time of change is the time of the last pruning.
_MARK = "pruned"
_EVERY = 3600.0
_DAY = 86_400.0
# Seconds that a pruning between two calls may take, and seconds until the next one continues it.
_SHORT = 0.2
_SOON = 60.0
# Bytes of an index that is compacted between two calls.
_SMALL = 8 << 20


class RecordsInUseError(AgentHooksError):
    """A session cannot be forgotten while a process writes its records."""


def prune_at_times(directory: str, days: float, limit: int) -> None:
    """Call `prune` unless that happened within the last hour; a failure is left to the next time."""
    mark = os.path.join(directory, _MARK)
    try:
        if 0 <= time.time() - os.stat(mark).st_mtime < _EVERY:
            return
    except OSError:
        if not os.path.isdir(directory):
            # The first record of all.
            return
    with suppress(OSError, StorageError):
        # Before the work, so that no other process begins it too.
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.utime(mark)
        if not _prune(directory, days, limit, _SHORT)[1]:
            soon = time.time() - _EVERY + _SOON
            os.utime(mark, (soon, soon))


def prune(directory: str, days: float, limit: int) -> list[Removed]:
    """Remove the files that were last written more than `days` ago, and the oldest while all have over `limit` bytes.

    A file with a living writer stays.  Returns the facts about the removed files.  Raises `StorageError` before any is
    removed.
    """
    return _prune(directory, days, limit, inf)[0]


def _prune(directory: str, days: float, limit: int, seconds: float) -> tuple[list[Removed], bool]:
    """Remove as many files as the time allows; return the facts about them, and whether none was left.

    `seconds`: a quarter to find the files, and half to remove them; unless it is `inf`, a large index is not compacted.
    """
    every = record_files(directory)
    found = _found(every, time.monotonic() + seconds / 4)
    is_whole = len(found) == len(every)
    deadline = time.monotonic() + seconds / 2
    total, oldest = sum(size for _, size, _ in found), time.time() - days * _DAY
    paths: list[str] = []
    for changed, size, path in found:
        if paths and time.monotonic() >= deadline - seconds / 4:
            is_whole = False
            break
        if (changed >= oldest and total <= limit) or _has_writer(path):
            continue
        paths.append(path)
        total -= size
    removed = _remove(directory, paths, "prune", deadline) if paths else []
    return removed, is_whole and len(removed) == len(paths)


def _found(paths: list[str], deadline: float) -> list[tuple[float, int, str]]:
    """Return the time of change, the size and the path of each file, in this order; some of them by the deadline."""
    found = []
    for path in paths:
        with suppress(OSError):
            status = os.stat(path)
            found.append((status.st_mtime, status.st_size, path))
        if time.monotonic() >= deadline:
            break
    return sorted(found)


def forget(directory: str, session: str) -> list[Removed]:
    """Remove all files of a session.

    Raises `RecordsInUseError` while a process writes one of them, and `StorageError`; then nothing was removed.
    """
    paths = files_of(directory, session)
    if in_use := [path for path in paths if _has_writer(path)]:
        names = ", ".join(map(os.path.basename, in_use))
        raise RecordsInUseError(f"session {session} is still being recorded ({names}); end its agent first")
    return _remove(directory, paths, "forget") if paths else []


def _remove(directory: str, paths: list[str], why: Literal["prune", "forget"], deadline: float = inf) -> list[Removed]:
    """Remove files after their tombstone is in the index."""
    removed = []
    for path in paths:
        removed.append(_removed(path))
        if time.monotonic() >= deadline:
            break
    paths, size = paths[: len(removed)], 0
    for path in paths:
        with suppress(OSError):
            size += os.stat(path).st_size
    index = Index(directory)
    index.append(
        Tombstone,
        {"why": why, "files": tuple(removed), "bytes": size, "user": str(os.getuid())},
        patience=1.0 if why == "forget" else 0.05,
    )
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
    with suppress(StorageError, OSError):
        if deadline == inf or os.stat(os.path.join(directory, INDEX)).st_size <= _SMALL:
            index.compact(lambda name: not os.path.lexists(os.path.join(directory, name)))
    index.close()
    return removed


def _removed(path: str) -> Removed:
    """Return the facts about a file that is about to be removed, as far as it can be read."""
    name = os.path.basename(path)
    try:
        first = next(read_lines(path), None)
        data, _, _ = tail(path)
    except StorageError:
        return Removed(file=name)
    last = decode_line(data)
    times: tuple[datetime | None, datetime | None] = (
        None if first is None else first.time,
        None if last is None else last.time,
    )
    lines = 0 if last is None else last.n
    head = line_hash(data[:-1]) if data else ""
    return Removed(file=name, session=name_of_session(path), lines=lines, head=head, first=times[0], last=times[1])


def _has_writer(path: str) -> bool:
    try:
        return is_written(path)
    except OSError:
        # The file cannot be opened, or the file system has no locks.
        return False
