"""Take files apart that `git cat-file --batch` writes one after another, while they come.

So a restore runs git once, and keeps no file in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

_MISSING = "its content is gone from git's object store"


class Receiver(Protocol):
    """Takes one file: `begin`, any number of `take`, then `end`; or `fail` with the reason alone."""

    def begin(self, size: int) -> None:
        """A file of so many bytes begins."""

    def take(self, chunk: bytes) -> None:
        """Take the next bytes of it."""

    def end(self) -> None:
        """The file is whole."""

    def fail(self, reason: str) -> None:
        """Git has no such file."""


class Contents:
    """Hands git's output over to a receiver for each file that was asked for, in that order."""

    def __init__(self, receivers: Iterator[Receiver]) -> None:
        self._receivers = receivers
        self._rest = b""
        self._step: Callable[[], bool] = self._header
        self._receiver: Receiver
        # Bytes of the file, and of the line break behind it, which are still to come.
        self._left = 0
        self._is_file = False

    def __call__(self, chunk: bytes) -> None:
        """Take the next bytes of git's output."""
        self._rest += chunk
        while self._step():
            pass

    def _header(self) -> bool:
        line, end, rest = self._rest.partition(b"\n")
        if not end:
            return False
        self._rest = rest
        self._receiver = next(self._receivers)
        _, kind, size = (*line.split(b" "), b"", b"")[:3]
        if not size:
            self._receiver.fail(_MISSING)
            return True
        self._is_file, self._left, self._step = kind == b"blob", int(size), self._body
        if self._is_file:
            self._receiver.begin(int(size))
        return True

    def _body(self) -> bool:
        chunk, self._rest = self._rest[: self._left], self._rest[self._left :]
        self._left -= len(chunk)
        if chunk and self._is_file:
            self._receiver.take(chunk)
        # A line break follows each file.
        if self._left or not self._rest:
            return False
        self._rest, self._step = self._rest[1:], self._header
        if self._is_file:
            self._receiver.end()
        else:
            self._receiver.fail("the checkpoint names another kind of object than a file there")
        return True
