"""Recorded sessions as files: found, recognised, and read line by line.  `READERS` is the table of formats.

Above: replaying, cli.  Below: base, host, bridges.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from agent_hooks.errors import os_reason
from agent_hooks.transcripts.base import Reader, RecordedCall, RecordedEnd, TranscriptError

__all__ = ["READERS", "BadLine", "Transcript", "find_transcripts"]

# module, class; the first that recognises a line reads the file
READERS: dict[str, tuple[str, str]] = {
    "session": ("agent_hooks.transcripts.session", "SessionReader"),
    "claude-code": ("agent_hooks.transcripts.claude_code", "ClaudeCodeReader"),
}
LONGEST = 64 * 1024 * 1024  # bytes of a line
_HEAD = 100  # lines within which a file shows what it is


class BadLine(Struct, frozen=True):
    """A line that could not be read, and why."""

    error: str


class Transcript:
    """A file that holds a recorded session, read once: `for number, found in Transcript(path)`.

    Leave it, or close it.  Raises `TranscriptError` that names the file when it cannot be opened or is none.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file: BinaryIO = open(path, "rb")  # noqa: SIM115  # closed on leaving
            self._head: list[bytes | None] = []
            self.reader = self._recognised()
        except BaseException as exc:  # whatever it is goes on its way, and the file is closed
            self.close()
            if isinstance(exc, OSError):
                raise TranscriptError(f"{path}: cannot be read: {os_reason(exc)}") from None
            raise

    def _recognised(self) -> Reader:
        readers: list[Reader] = [getattr(import_module(module), name)(self.path) for module, name in READERS.values()]
        for line in itertools.islice(_lines(self._file), _HEAD):
            self._head.append(line)
            for reader in readers:
                if line is not None and reader.recognises(line):
                    return reader
        raise TranscriptError(
            f"{self.path}: is neither a transcript of Claude Code nor a session of agent-hooks: "
            + (f"none of its first {len(self._head)} lines belongs to one" if self._head else "it is empty")
        )

    def close(self) -> None:
        """Close the file."""
        with suppress(AttributeError):  # it could not even be opened
            self._file.close()

    def __enter__(self) -> Transcript:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[int, RecordedCall | RecordedEnd | BadLine]]:
        """Yield what the lines tell, with their numbers, in the order of the file."""
        lines = itertools.chain(self._head, _lines(self._file))
        self._head = []
        try:
            for number, line in enumerate(lines, 1):
                if line is None:
                    yield number, BadLine(f"is longer than {LONGEST // 1024 // 1024} MiB")
                elif line.strip():
                    try:
                        found = self.reader.read(line)
                    except TranscriptError as exc:
                        yield number, BadLine(str(exc))
                        continue
                    for each in found:
                        yield number, each
        except OSError as exc:
            raise TranscriptError(f"{self.path}: cannot be read: {os_reason(exc)}") from None


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of a file, `None` for one that is too long."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
            yield None
        else:
            yield line


def find_transcripts(paths: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each file, and whether it was named; of a directory, all `*.jsonl` below it, in the order of their paths.

    That puts the sub-agents of a session right behind it.  A file that is named twice comes once.
    """
    seen: set[str] = set()
    for path in paths:
        named = not os.path.isdir(path)
        found = [path] if named else sorted(filter(os.path.isfile, map(str, Path(path).rglob("*.jsonl"))))
        for each in found:
            if (real := os.path.realpath(each)) not in seen:
                seen.add(real)
                yield each, named
