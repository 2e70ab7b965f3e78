"""stdin and stdout as a wire of lines, which hooks and their programs neither read nor write.

Both ends have a daemon thread: a pipe may block, and neither the event loop nor the end of the process may wait for it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from time import monotonic

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

from agent_hooks.errors import os_reason
from agent_hooks.values.wire import to_json

# Bytes of a client's line; an image of 24 MB fits.
MAX_LINE = 32 * 1024 * 1024
# Bytes that may wait for the client.
MAX_UNREAD = 64 * 1024 * 1024
# Seconds until the session ends because the client does not read.
PATIENCE = 30.0
_CHUNK = 64 * 1024


def reserve_stdin() -> int:
    """Return a descriptor of the real stdin; from now on, descriptor 0 is empty."""
    real = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return real


class LineReader:
    """Splits bytes into lines at LF only; a line longer than `limit` bytes is dropped.

    Yields the number of each line, from 1, and its bytes, `None` for a line that is too long.
    """

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._number = 1
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Take more bytes; yield the lines that they end, and a line as soon as it is too long."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield from self._take(end)
            if not self._skipping:
                yield self._number, bytes(self._begun)
            self._begun.clear()
            self._skipping = False
            self._number += 1
        yield from self._take(rest)

    def end(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the bytes after the last newline, if there are any."""
        if self._begun:
            yield self._number, bytes(self._begun)

    def _take(self, part: bytes) -> Iterator[tuple[int, bytes | None]]:
        if self._skipping:
            return
        self._begun += part
        if len(self._begun) > self._limit:
            self._begun = bytearray()
            self._skipping = True
            yield self._number, None


async def read_chunks(file: int) -> AsyncIterator[bytes]:
    """Yield the bytes of a descriptor as they come, until its end or a failure."""
    # The parent process may have changed it.
    os.set_blocking(file, True)
    token = current_token()
    wanted = Semaphore(0)
    arrived = anyio.Event()
    chunk = b""

    def work() -> None:
        nonlocal chunk
        more = True
        while more:
            wanted.acquire()
            try:
                chunk = os.read(file, _CHUNK)
            except OSError:
                chunk = b""
            more = bool(chunk)
            try:
                from_thread.run_sync(arrived.set, token=token)
            except (anyio.RunFinishedError, RuntimeError):
                # The event loop has ended.
                return

    Thread(target=work, name="agent_hooks stdin", daemon=True).start()
    while True:
        wanted.release()
        await arrived.wait()
        if not chunk:
            return
        arrived = anyio.Event()
        yield chunk


class RecordWriter:
    """Writes records to a descriptor, in the order in which they were sent.

    `send` may be called from any thread and returns at once.  `gone` is set when the client has stopped reading; records
    sent after that are dropped.  `broken` is the reason of any failure but a closed pipe, a full disk for example.
    """

    def __init__(self, file: int, *, max_unread: int = MAX_UNREAD, patience: float = PATIENCE) -> None:
        self.gone = anyio.Event()
        self.broken: str | None = None
        os.set_blocking(file, True)  # as in `read_chunks`
        self._file = file
        self._max_unread = max_unread
        self._patience = patience
        # When the client last read, or had nothing to read.
        self._read_at = monotonic()
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = Lock()
        self._unread = 0  # bytes in the queue
        self._dead = False
        self._token = current_token()
        self._thread = Thread(target=self._work, name="agent_hooks stdout", daemon=True)
        self._thread.start()

    def send(self, record: object) -> None:
        """Queue a record; the thread writes it as a line."""
        line = to_json(record) + b"\n"
        for separator, escape in _SEPARATORS:
            line = line.replace(separator, escape)
        with self._lock:
            if self._dead:
                return
            if not self._unread:
                self._read_at = monotonic()
            self._unread += len(line)
            self._lines.put(line)
            stuck = self._unread > self._max_unread and monotonic() - self._read_at > self._patience
        if stuck:
            self._give_up()

    def close(self, timeout: float) -> bool:
        """Write the queued records, for at most `timeout` seconds; return whether all of them were written."""
        self._lines.put(None)
        self._thread.join(0 if self._dead else timeout)
        return not self._dead and not self._thread.is_alive()

    def _work(self) -> None:
        while (line := self._lines.get()) is not None:
            rest = memoryview(line)
            try:
                while rest and not self._dead:
                    rest = rest[os.write(self._file, rest[:_CHUNK]) :]
                    self._read_at = monotonic()
            except OSError as exc:
                if not isinstance(exc, BrokenPipeError):
                    self.broken = os_reason(exc)
                self._give_up()
            with self._lock:
                self._unread -= len(line)

    def _give_up(self) -> None:
        with self._lock:
            self._dead = True
        # In a new thread, because this one may be the event loop's, or one that the event loop waits for.
        Thread(target=self._set_gone, name="agent_hooks stdout", daemon=True).start()

    def _set_gone(self) -> None:
        try:
            from_thread.run_sync(self.gone.set, token=self._token)
        except (anyio.RunFinishedError, RuntimeError):
            # The event loop has ended.
            pass


# JSON allows these in strings, but the line readers of many clients stop at them.
_SEPARATORS = tuple((separator.encode(), f"\\u{ord(separator):04x}".encode()) for separator in "\u2028\u2029\x85")
