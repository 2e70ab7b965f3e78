"""The index: the heads of all record files, and the tombstones of those that were removed.

A head is the number of lines of a file and the hash of its last line at one moment, so that a file that is cut, rebuilt
or removed later differs from the index.  The index is a chain of its own; a lock lets one process append at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from agent_hooks.errors import os_reason
from agent_hooks.records.files import INDEX
from agent_hooks.records.lines import VERSION, Head, Line, Note
from agent_hooks.records.reading import decode_line, raw_lines, read_heads, tail
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, refusing, write_atomically
from agent_hooks.storage.locks import try_lock

LOCK = "index.lock"
# Seconds between two tries to get the lock.
_PAUSE = 0.002
_encode = msgspec.json.Encoder().encode
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class IndexBusyError(StorageError):
    """Another process holds the lock of the index for longer than the caller waits."""


@contextmanager
def locked(directory: str, patience: float) -> Iterator[None]:
    """Hold the lock of the index; wait at most `patience` seconds.  Raises `StorageError`."""
    path = os.path.join(directory, LOCK)
    with refusing("lock", path):
        fd = os.open(path, _FLAGS, 0o600)
        try:
            deadline = time.monotonic() + patience
            while not try_lock(fd):
                if time.monotonic() >= deadline:
                    raise IndexBusyError(f"{path} is held by another process")
                time.sleep(_PAUSE)
            yield
        finally:
            # Closing releases the lock.
            os.close(fd)


class Index:
    """The index of one records directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, INDEX)

    def append(self, kind: type[Line], fields: dict[str, Any], *, patience: float = 0.05) -> None:
        """Append one line; raises `StorageError`, and `IndexBusyError` after `patience` seconds without the lock."""
        with locked(self._directory, patience), refusing("write", self._path):
            fd = os.open(self._path, _FLAGS | os.O_APPEND, 0o600)
            try:
                prev, number = self._mend(fd)
                self._write(fd, _line(kind, fields, prev, number + 1))
            finally:
                os.close(fd)

    def _mend(self, fd: int) -> tuple[str, int]:
        """Return the hash and the number of the last line; a part of a line behind it is cut off, with a note."""
        last, end, size = tail(self._path)
        prev, number = _chained(last)
        if end == size:
            return prev, number
        # The lock is ours, so the process that wrote this part is gone.
        os.ftruncate(fd, end)
        note = _line(Note, {"about": "unfinished", "file": INDEX, "offset": end, "bytes": size - end}, prev, number + 1)
        self._write(fd, note)
        return sha256(note), number + 1

    def _write(self, fd: int, line: bytes) -> None:
        size = os.fstat(fd).st_size
        data = line + b"\n"
        written = os.write(fd, data)
        if written != len(data):
            os.ftruncate(fd, size)
            raise StorageError(f"cannot write {self._path}: {os_reason(OSError(28, ''))}")

    def compact(self, gone: Callable[[str], bool], *, patience: float = 0.05) -> None:
        """Drop all heads but the last of each file, and those of files that are `gone`; tombstones and notes stay.

        The first line that stays is chained to the last line of the index as it was.  Raises `StorageError`.
        """
        with locked(self._directory, patience):
            if not os.path.lexists(self._path):
                return
            heads = {name: head.n for name, head in read_heads(self._directory).items() if not gone(name)}
            prev, _ = _chained(tail(self._path)[0])
            kept: list[bytes] = []
            for _, data in raw_lines(self._path):
                line = decode_line(data)
                if line is None or (isinstance(line, Head) and heads.get(line.file) != line.n):
                    continue
                renewed = _encode(msgspec.structs.replace(line, prev=prev, n=len(kept) + 1))
                prev = sha256(renewed)
                kept.append(renewed)
            write_atomically(self._path, b"".join(line + b"\n" for line in kept), secret=True)


def _chained(last: bytes) -> tuple[str, int]:
    """Return the hash and the number of an index's last line; those of the empty index are its name's and 0."""
    if not last:
        return sha256(os.fsencode(INDEX)), 0
    line = decode_line(last)
    return sha256(last[:-1]), 0 if line is None else line.n


def _line(kind: type[Line], fields: dict[str, Any], prev: str, number: int) -> bytes:
    line = kind(
        v=VERSION,
        prev=prev,
        n=number,
        time=datetime.now(UTC),
        clock=time.monotonic_ns(),
        id=f"index-{number}",
        pid=os.getpid(),
        **fields,
    )
    return _encode(line)
