"""Writes the record file of one session and process: a chain of lines, each with one `os.write`.

1. The file is made at the first line, and locked as long as its writer lives.
2. Each line bears the hash of the line before, and its own number.
3. A line that cannot be written whole is taken back, so that the file ends in a whole line; the number of lost lines is
   noted as soon as a line can be written again.
4. The head goes to the index at the start, every `HEAD_LINES` lines or `HEAD_SECONDS` seconds, and at the end.  An index
   that cannot be written delays the head and nothing else.
5. A part of a line at the end of another file of the session, whose writer is gone, is noted, once.
6. After a fork the child begins a file of its own.
7. A file that was removed or moved away is left at the next head, and its lines count as lost; the next line begins
   another file.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any
from weakref import WeakSet

import msgspec

from agent_hooks.concurrency.numbers import high
from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.records.files import file_name, files_of, make_directory
from agent_hooks.records.index import Index
from agent_hooks.records.lines import VERSION, Head, Line, Note
from agent_hooks.records.reading import tail
from agent_hooks.storage.digests import line_hash
from agent_hooks.storage.files import StorageError
from agent_hooks.storage.locks import try_lock
from agent_hooks.values.wire import to_json

HEAD_LINES = 64
HEAD_SECONDS = 5.0
# Files of the session that are checked for an unfinished line.
_CHECKED = 8
# A step back of the clock that is noted, in microseconds.
_BACK = 1_000_000
# Seconds that the last head waits for the index.
LAST_PATIENCE = 0.5
# Tries to lock a new file, and seconds between them: a process that asks whether the file has a writer holds it shortly.
_TRIES = 50
_PAUSE = 0.001
_encode = msgspec.json.Encoder().encode
_EPOCH = datetime.fromtimestamp(0, UTC)
# The beginning of a line of each kind: its tag, and the length of the chaining fields that `_encode` gives it.
_beginnings: dict[type[Line], tuple[str, int]] = {}
# The number of forks between this process and the first; `os.getpid` is a system call.
_forks = [0]
# All writers of this process.
_writers: WeakSet[ChainWriter] = WeakSet()
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


def _after_fork() -> None:
    """Count the fork; a thread that held a lock at the fork does not live in the child, so each writer gets a new one."""
    _forks[0] += 1
    for writer in list(_writers):
        writer.renew_lock()


os.register_at_fork(after_in_child=_after_fork)


class RecordError(AgentHooksError):
    """A line cannot be written; the text names the file and the system's reason."""


class ChainWriter:
    """Writes the file of one session: `writer.write(Decision, fields, head)`.

    `directory`: of the records; `tap`: gets the file's name and the bytes of each line that was written, without its
    newline.  No method but `write` raises.
    """

    _fd = -1

    def __init__(self, directory: str, session: str, tap: Callable[[str, bytes], None] | None = None) -> None:
        self.session = session
        self._tap = tap
        self.directory = directory
        self._index = Index(directory)
        self.renew_lock()
        self._prefix = os.urandom(6).hex()
        self._id_forks = _forks[0]
        self._ids = 0
        # The lines that no file has; they are noted in the file that can be written next.
        self._lost = 0
        self._lost_reason = ""
        self._forget()
        _writers.add(self)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        """Close the file of a writer that was dropped; its last head is not written."""
        if self._fd >= 0:
            close(self._fd)

    def renew_lock(self) -> None:
        """Take another lock, in a process that no other thread lives in."""
        self._lock = Lock()

    def _forget(self) -> None:
        self._forks = _forks[0]
        self._fd = -1
        self.name = ""
        self._head = ""
        self._number = 0
        self._size = 0
        # The device and the number of the file.
        self._place = (0, 0)
        self._is_locked = False
        self._indexed = 0
        # The monotonic time in nanoseconds at which the next head is due.
        self._due = 0
        # The time of the last line in microseconds since 1970, and its seconds as text.
        self._last_time = 0
        self._second = -1
        self._second_text = ""

    def new_id(self) -> str:
        """Return an id that no other call has."""
        if self._id_forks != _forks[0]:
            self._id_forks, self._prefix = _forks[0], os.urandom(6).hex()
        self._ids += 1
        return f"{self._prefix}{self._ids:06x}"

    def write(self, kind: type[Line], fields: dict[str, Any] | bytes, head: bytes, *, required: bool = False) -> None:
        """Append one line; `head`: the fields that stay the same from line to line, as JSON without braces.

        `fields`: the other ones, by name, or as JSON without braces, which is faster; `required`: make sure that the
        file is still in its directory, and begin another one if it is not.

        Raises `RecordError` when the line cannot be written, and `ValueError` for an empty `head`.
        """
        if not head:
            raise ValueError('head is empty; it must have a field, for example b\'"session":"s1"\'')
        with self._lock:
            try:
                if self._forks != _forks[0] or self._fd < 0:
                    self._open()
                elif required and not self._is_there():
                    self._leave()
                    self._open()
                if self._lost:
                    self._write_lost(head)
                clock = self._append(kind, fields, head)
            except (OSError, StorageError) as exc:
                self._lost += 1
                self._lost_reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
                raise RecordError(f"a record was not written to {self.directory}: {self._lost_reason}") from None
            if self._number >= self._indexed + HEAD_LINES:
                self._write_head("lines")
            elif clock >= self._due:
                self._write_head("time")
            else:
                return
            if not self._is_there():
                self._leave()

    def close(self, patience: float = LAST_PATIENCE) -> None:
        """Write the last head and close the file; the next `write` begins another file.

        `patience`: seconds to wait while another process holds the index.
        """
        with self._lock:
            if self._fd < 0 or self._forks != _forks[0]:
                return
            if self._number > self._indexed:
                self._write_head("end", patience)
            self._index.close()
            os.close(self._fd)
            self._forget()

    # ---- the file

    def _open(self) -> None:
        make_directory(self.directory)
        if self._forks != _forks[0]:
            # The parent process notes the lines that it lost.
            self._lost = 0
        if self._fd >= 0:
            # The descriptor is that of the parent process, which goes on with its file.
            os.close(self._fd)
            # The lock is shared with that process as well.
            self._index.close()
        self._forget()
        self._make_file()
        self._head = line_hash(os.fsencode(self.name))
        self._lock_file(_TRIES)
        self._write_head("start")
        for path, offset, size in self._unfinished():
            fields = {
                "id": self.new_id(),
                "about": "unfinished",
                "file": os.path.basename(path),
                "offset": offset,
                "bytes": size - offset,
            }
            self._append(Note, fields, to_json({"session": self.session})[1:-1])
            # The mark that this end has been noted.
            with suppress(OSError):
                os.chmod(path, 0o400)

    def _make_file(self) -> None:
        pid, start = os.getpid(), time.time_ns() // 1_000_000
        while True:
            self.name = file_name(self.session, pid, start)
            try:
                self._fd = high(os.open(self._path(), _FLAGS, 0o600))
                break
            except FileExistsError:
                start += 1
        status = os.fstat(self._fd)
        self._place = status.st_dev, status.st_ino

    def _path(self) -> str:
        return os.path.join(self.directory, self.name)

    def _lock_file(self, tries: int) -> None:
        """Mark the file as that of a living writer; on a file system without locks it lacks that mark."""
        with suppress(OSError):
            for _ in range(tries):
                if try_lock(self._fd):
                    self._is_locked = True
                    return
                time.sleep(_PAUSE)

    def _is_there(self) -> bool:
        """Tell whether the file is still in its directory; where that cannot be known, it counts as there."""
        try:
            status = os.lstat(self._path())
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return (status.st_dev, status.st_ino) == self._place

    def _leave(self) -> None:
        """Close a file that was removed; its lines count as lost."""
        self._lost += self._number
        self._lost_reason = f"{self.name} was removed while it was written"
        self._index.close()
        os.close(self._fd)
        self._forget()

    def _unfinished(self) -> list[tuple[str, int, int]]:
        """Return the files of the session that end in a part of a line and have no writer, with both ends."""
        found = []
        for path in files_of(self.directory, self.session)[-_CHECKED - 1 :]:
            if os.path.basename(path) == self.name:
                continue
            with suppress(OSError, StorageError):
                if not stat.S_IMODE(os.lstat(path).st_mode) & 0o200:
                    continue
                _, end, size = tail(path)
                if end != size and not is_written(path):
                    found.append((path, end, size))
        return found

    def _append(self, kind: type[Line], fields: dict[str, Any] | bytes, head: bytes) -> int:
        """Append one line, and return the monotonic time in it."""
        tag, length = _beginnings.get(kind) or _beginning(kind)
        if not isinstance(fields, bytes):
            fields = _encode(kind(v=VERSION, prev="", n=0, time=_EPOCH, clock=0, **fields))[length:-1]
        now = time.time_ns() // 1000
        if now < self._last_time:
            self._note_clock(now, head)
        self._last_time = now
        second, micros = divmod(now, 1_000_000)
        if second != self._second:
            self._second, self._second_text = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        number, clock = self._number + 1, time.monotonic_ns()
        begin = (
            f'{{"kind":"{tag}","v":{VERSION},"prev":"{self._head}","n":{number}'
            f',"time":"{self._second_text}.{micros:06d}Z","clock":{clock},'
        )
        whole = b"%b%b,%b}" % (begin.encode(), fields, head)
        written = os.write(self._fd, whole + b"\n")
        if written <= len(whole):
            # Almost always the disk is full.  If the part stays, the next writer notes it.
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._head, self._number, self._size = line_hash(whole), number, self._size + written
        if self._tap is not None:
            self._tap(self.name, whole)
        return clock

    def _note_clock(self, now: int, head: bytes) -> None:
        """Note that the machine's clock went back."""
        back, self._last_time = self._last_time, now
        if back - now > _BACK:
            reason = f"the clock went back, from {datetime.fromtimestamp(back / 1e6, UTC).isoformat()}"
            self._append(Note, {"id": self.new_id(), "about": "clock", "reason": reason}, head)

    def _write_lost(self, head: bytes) -> None:
        note = {"id": self.new_id(), "about": "lost", "lines": self._lost, "reason": self._lost_reason}
        self._append(Note, note, head)
        self._lost = 0

    def _write_head(self, at: str, patience: float = 0.0) -> None:
        self._due = time.monotonic_ns() + int(HEAD_SECONDS * 1e9)
        fields = {
            "session": self.session.encode("utf-8", "replace").decode(),
            "file": self.name,
            "lines": self._number,
            "bytes": self._size,
            "head": self._head,
            "at": at,
        }
        # The head of an empty file promises nothing yet.
        durable = at != "start"
        with suppress(OSError, StorageError):
            if durable:
                # The index must not know of lines that a power cut takes away.
                os.fsync(self._fd)
            self._index.append(Head, fields, patience=patience, durable=durable)
            self._indexed = self._number
        if at != "lines":
            # The next head is far away, and a process may have many writers.
            self._index.close()
        if not self._is_locked:
            self._lock_file(1)


def _beginning(kind: type[Line]) -> tuple[str, int]:
    """Return the tag of a kind of line, and the length of the fields that chain an empty one."""
    tag = str(kind.__struct_config__.tag)
    chain = {"kind": tag, "v": VERSION, "prev": "", "n": 0, "time": _EPOCH, "clock": 0}
    found = _beginnings[kind] = tag, len(_encode(chain))
    return found


def is_written(path: str) -> bool:
    """Tell whether a writer has the file open; raises `OSError`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return not try_lock(fd, shared=True)
    finally:
        os.close(fd)


__all__ = ["HEAD_LINES", "HEAD_SECONDS", "LAST_PATIENCE", "ChainWriter", "RecordError", "is_written"]
