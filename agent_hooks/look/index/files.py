"""The files that the index is made of, and how far each was read.

A file is known by its device and inode.  A file that is another one of that name, that has become shorter, or whose
content was replaced, is read from the beginning.  A file that is gone takes its calls with it.

A replaced content is noticed by the first and the last bytes that were read, and by a change without growth.  A change of
other bytes in a file that has grown since is not noticed: `records verify` finds it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator

from msgspec import Struct

from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, open_regular

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
