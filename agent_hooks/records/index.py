"""The index: the heads of all record files, and the tombstones of those that were removed.

A head is the number of lines of a file and the hash of its last line at one moment, so that a file that is cut, rebuilt
or removed later differs from the index.  The index is a chain of its own; a lock lets one process append at a time.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from agent_hooks.concurrency.numbers import high
from agent_hooks.records.files import INDEX
from agent_hooks.records.lines import VERSION, Head, Line, Note
from agent_hooks.records.reading import decode_line, link_of, raw_lines, read_heads, tail
from agent_hooks.storage.digests import line_hash
from agent_hooks.storage.files import StorageError, refusing, write_atomically
from agent_hooks.storage.locks import wait_for_lock

LOCK = "index.lock"
# Seconds between two tries to get the lock.
_PAUSE = 0.002
_encode = msgspec.json.Encoder().encode
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class IndexBusyError(StorageError):
    """Another process holds the lock of the index for longer than the caller waits."""


class Index:
    """The index of one records directory, for one writer or a function that removes files.

    Its two files stay open between appends, until `close`, and the last line is remembered, so that an append alone
    costs little.
    """

    _lock = -1
    _fd = -1

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, INDEX)
        # The file, the size, the hash and the number of lines that the last append left.
        self._inode = 0
        self._size = -1
        self._prev = ""
        self._number = 0

    def append(
        self, kind: type[Line], fields: dict[str, Any], *, patience: float = 0.05, durable: bool = False
    ) -> None:
        """Append one line; raises `StorageError`, and `IndexBusyError` after `patience` seconds without the lock.

        `durable`: the line outlives a power cut as soon as this returns.
        """
        with refusing("write", self._path):
            self._acquire(patience)
            try:
                self._follow()
                self._write(kind, fields)
            finally:
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            if durable:
                # Other processes need not wait for the disk.
                os.fsync(self._fd)

    def close(self) -> None:
        """Close the files; a later append opens them again."""
        for fd in (self._lock, self._fd):
            if fd >= 0:
                os.close(fd)
        self._lock = self._fd = self._size = -1

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        """Close the files of an index that was dropped."""
        for fd in (self._lock, self._fd):
            if fd >= 0:
                close(fd)

    def _acquire(self, patience: float) -> None:
        path = os.path.join(self._directory, LOCK)
        if self._lock < 0:
            self._lock = high(os.open(path, _FLAGS, 0o600))
        if not wait_for_lock(self._lock, patience, pause=_PAUSE):
            raise IndexBusyError(f"{path} is held by another process")

    def _follow(self) -> None:
        """Read the last line, unless nothing was appended since the last time; cut off a part of a line behind it."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            status = None
        if status is None or status.st_ino != self._inode or self._fd < 0:
            # The index was compacted, or this is the first append.
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = high(os.open(self._path, _FLAGS | os.O_APPEND, 0o600))
            status = os.fstat(self._fd)
            self._inode, self._size = status.st_ino, -1
        if status.st_size == self._size:
            return
        last, end, size = tail(self._path)
        self._prev, self._number, self._size = *_chained(last), end
        if end != size:
            # The lock is ours, so the process that wrote this part is gone.
            os.ftruncate(self._fd, end)
            self._write(Note, {"about": "unfinished", "file": INDEX, "offset": end, "bytes": size - end})

    def _write(self, kind: type[Line], fields: dict[str, Any]) -> None:
        line = _line(kind, fields, self._prev, self._number + 1)
        written = os.write(self._fd, line + b"\n")
        if written != len(line) + 1:
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._prev, self._number, self._size = line_hash(line), self._number + 1, self._size + written

    def compact(self, gone: Callable[[str], bool], *, patience: float = 0.05) -> None:
        """Drop all heads but the last of each file, and those of files that are `gone`; tombstones and notes stay.

        The first line that stays is chained to the last line of the index as it was.  Raises `StorageError`.
        """
        with refusing("write", self._path):
            self._acquire(patience)
            try:
                self._compact(gone)
            finally:
                fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _compact(self, gone: Callable[[str], bool]) -> None:
        if os.path.lexists(self._path):
            heads = {name: head.n for name, head in read_heads(self._directory).items() if not gone(name)}
            prev, _ = _chained(tail(self._path)[0])
            kept: list[bytes] = []
            for _, data in raw_lines(self._path):
                line = decode_line(data)
                if line is None or (isinstance(line, Head) and heads.get(line.file) != line.n):
                    continue
                renewed = _encode(msgspec.structs.replace(line, prev=prev, n=len(kept) + 1))
                prev = line_hash(renewed)
                kept.append(renewed)
            write_atomically(self._path, b"".join(line + b"\n" for line in kept), secret=True, durable=True)


def _chained(last: bytes) -> tuple[str, int]:
    """Return the hash and the number of an index's last line; those of the empty index are its name's and 0."""
    if not last:
        return line_hash(os.fsencode(INDEX)), 0
    link = link_of(last)
    return line_hash(last[:-1]), 0 if link is None else link[1]


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
