"""The files that the index is made of, and how far each was read.

A file is known by its device and inode.  A file that is another one of that name, that has become shorter, or whose
content was replaced, is read from the beginning.  A file that is gone takes its calls with it.

A replaced content is noticed by the first and the last bytes that were read, and by a change without growth.  A change of
other bytes in a file that has grown since is not noticed: `records verify` finds it.

The record files of a directory, as they are now.

A look at ten thousand files takes longer than the update of a page may.  So each time only those are looked at that are
new or were written a short time ago, and a part of the others: a process writes to its own file alone, and most of them
have ended.  All are looked at within ten seconds.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from math import ceil

from msgspec import Struct

from agent_hooks.records.files import parse_name
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, open_regular
from agent_hooks.transcripts import LONGEST, open_reader
from agent_hooks.transcripts.base import RecordedCall, TranscriptError
from agent_hooks.transcripts.databases import part

# Bytes at the beginning, and at the end of the part that was read, by which a file is known again.
_ENDS = 256


class Source(Struct):
    """One file.

    `kind`: `record`, or the name of the transcript's format; `offset`, `line`: the end of the last whole line that was
    read, and its number; `size`: the file's size at that time; `bad`, `newer`, `ahead`: the lines that could not be read,
    those of a later version, and those with a time in the future; `problem`: why the file was not read to its end;
    `state`: what the reader needs to go on.
    """

    file: int
    path: str
    kind: str
    device: int
    inode: int
    offset: int = 0
    line: int = 0
    size: int = 0
    bad: int = 0
    newer: int = 0
    ahead: int = 0
    problem: str = ""
    state: str = ""
    # The time of the file's last change, and the digest of its ends, when it was read.
    written: float = 0.0
    mark: str = ""


class Found(Struct, frozen=True):
    """A file as it is now."""

    path: str
    kind: str
    device: int
    inode: int
    size: int
    written: float


class Sources:
    """All files that were read, by path."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.by_path: dict[str, Source] = {}
        self._changed: set[str] = set()
        self._next = 1

    def load(self) -> None:
        """Read the table."""
        rows = self._connection.execute("SELECT * FROM files")
        self.by_path = {each.path: each for each in (Source(*row) for row in rows)}
        self._next = max((each.file for each in self.by_path.values()), default=0) + 1

    def pending(self, found: Iterable[Found]) -> Iterator[tuple[Found, Source | None]]:
        """Yield the files that have changed since they were read, with the source of those that were read before."""
        for each in found:
            source = self.by_path.get(each.path)
            if source is None or (source.size, source.written, source.inode, source.device) != (
                each.size,
                each.written,
                each.inode,
                each.device,
            ):
                yield each, source

    def begin(self, found: Found) -> Source:
        """Return the source of a file that is read from the beginning."""
        source = Source(self._next, found.path, found.kind, found.device, found.inode)
        self._next += 1
        self.by_path[found.path] = source
        self._changed.add(found.path)
        return source

    def note(self, source: Source) -> None:
        """Note that a source has changed."""
        self._changed.add(source.path)

    def forget(self, sources: Iterable[Source]) -> None:
        """Forget files that are gone."""
        for source in sources:
            self.by_path.pop(source.path, None)
            self._changed.discard(source.path)
            self._connection.execute("DELETE FROM files WHERE file = ?", (source.file,))

    def flush(self) -> None:
        """Write the sources that have changed."""
        fields = Source.__struct_fields__
        sql = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        rows = (tuple(getattr(self.by_path[path], name) for name in fields) for path in self._changed)
        self._connection.executemany(sql, rows)
        self._changed.clear()


def is_same(source: Source, found: Found) -> bool:
    """Tell whether a file may be read from where the last reading ended."""
    if (source.inode, source.device) != (found.inode, found.device) or found.size < source.offset:
        return False
    return not source.mark or (found.size != source.size and source.mark == mark_of(source.path, source.offset))


def mark_of(path: str, offset: int) -> str:
    """Return a digest of the first and the last bytes before an offset, empty if they cannot be read."""
    try:
        with open_regular(path, path) as file:
            ends = file.read(min(offset, _ENDS))
            file.seek(max(offset - _ENDS, 0))
            return sha256(ends + file.read(min(offset, _ENDS)))[:16]
    except (OSError, StorageError):
        return ""


def stated(path: str, kind: str) -> Found | None:
    """Return a file as it is now; `None` for one that is gone, or no regular file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not os.path.isfile(path):
        return None
    return Found(path, kind, status.st_dev, status.st_ino, status.st_size, status.st_mtime)


KIND = "record"
"""The kind of the files."""
# Seconds within which each file is looked at.
_WHOLE = 10.0
# Seconds since its last line for which a file is looked at each time.
_RECENT = 3600.0


class RecordFiles:
    """The record files of a directory; `clock` returns seconds, which never go back."""

    def __init__(self, directory: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        # By name; the names by the start of their processes.
        self._found: dict[str, Found] = {}
        self._order: list[tuple[int, str]] = []
        # The time of the directory's last change when its names were read, and the time of that reading.
        self._changed = -1
        self._listed = -_WHOLE
        # The place in the order at which the next look at a part begins, and the time of the last one.
        self._next = 0
        self._looked = clock()

    def now(self) -> list[Found]:
        """Return the files, the oldest start first."""
        now = self._clock()
        try:
            # It changes with each file that is added, renamed or removed.
            changed = os.stat(self._directory).st_mtime_ns
            # A file that came in the moment of the last reading did not change it again.
            if changed != self._changed or now >= self._listed + _WHOLE:
                self._list()
                self._changed, self._listed = changed, now
        except OSError:
            self._found.clear()
            self._order.clear()
            self._changed = -1
        self._look_again(now)
        return [self._found[name] for _, name in self._order]

    def _list(self) -> None:
        """Read the names, and look at the files that are new."""
        names = set(os.listdir(self._directory))
        self._forget(self._found.keys() - names)
        for name in names - self._found.keys():
            parsed = parse_name(name)
            if parsed is not None and self._look(name):
                insort(self._order, (parsed[2], name))

    def _look_again(self, now: float) -> None:
        """Look at the files of late, and at a part of the others."""
        since = time.time() - _RECENT
        recent = [name for name, each in self._found.items() if each.written >= since]
        share = min((now - self._looked) / _WHOLE, 1.0)
        self._looked = now
        total = len(self._order)
        part = [self._order[at % total][1] for at in range(self._next, self._next + ceil(total * share))]
        self._next = (self._next + len(part)) % max(total, 1)
        self._forget({name for name in {*recent, *part} if not self._look(name)})

    def _forget(self, gone: set[str]) -> None:
        """Forget files that are not there any more."""
        if gone:
            self._found = {name: each for name, each in self._found.items() if name not in gone}
            self._order = [each for each in self._order if each[1] not in gone]

    def _look(self, name: str) -> bool:
        """Take the facts of a file; return whether it is there."""
        path = f"{self._directory}{os.sep}{name}"
        try:
            status = os.lstat(path)
        except OSError:
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):
            return False
        self._found[name] = Found(path, KIND, status.st_dev, status.st_ino, status.st_size, status.st_mtime)
        return True


DATABASE = "opencode"
"""The reader whose files are databases."""


def line_at(path: str, at: int) -> bytes:
    """Return the line at an offset; empty if the file cannot be read any more."""
    try:
        with open_regular(path, path) as file:
            file.seek(at)
            return file.readline(LONGEST)
    except (StorageError, OSError):
        return b""


def transcript_line(kind: str, path: str, at: int) -> bytes:
    """Return a line of a transcript, or a part of a database; empty if it cannot be read any more."""
    if kind != DATABASE:
        return line_at(path, at)
    try:
        return part(path, at) or b""
    except TranscriptError:
        return b""


def shown_text(kind: str, path: str, line: bytes, call: str) -> str | None:
    """Return the result of a call in a line of a transcript, as the model saw it, or `None` if it is not there."""
    try:
        return open_reader(kind, path).shown(line, call) if line.strip() else None
    except TranscriptError:
        return None


def recorded_call(kind: str, path: str, line: bytes, call: str) -> RecordedCall | None:
    """Return the call with an id in a line of a transcript."""
    try:
        found = open_reader(kind, path).read(line) if line.strip() else ()
    except TranscriptError:
        return None
    calls = (each for each in found if isinstance(each, RecordedCall))
    return next((each for each in calls if each.tool_call_id == call), None)
