"""Find the files of recorded sessions, recognise their formats, and read them line by line.

`READERS` is the table of formats.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from glob import escape, glob
from importlib import import_module
from typing import BinaryIO

from msgspec import Struct

from agent_hooks.errors import os_reason
from agent_hooks.transcripts.base import Reader, RecordedCall, RecordedEnd, TranscriptError
from agent_hooks.transcripts.databases import MAGIC, parts

__all__ = ["OTHER_IDS", "READERS", "BadLine", "Transcript", "find_standard", "find_transcripts", "open_reader"]

# Module and class of each reader.  The first reader that recognises a line reads the file.  Qwen Code's lines have the
# fields of Claude Code's, and pi's header has those of ours.
READERS: dict[str, tuple[str, str]] = {
    "pi": ("agent_hooks.transcripts.pi", "PiReader"),
    "session": ("agent_hooks.transcripts.session", "SessionReader"),
    "qwen-code": ("agent_hooks.transcripts.qwen_code", "QwenCodeReader"),
    "claude-code": ("agent_hooks.transcripts.claude_code", "ClaudeCodeReader"),
    "codex": ("agent_hooks.transcripts.codex", "CodexReader"),
    "gemini-cli": ("agent_hooks.transcripts.gemini_cli", "GeminiCliReader"),
    "copilot-cli": ("agent_hooks.transcripts.copilot_cli", "CopilotCliReader"),
    "opencode": ("agent_hooks.transcripts.opencode", "OpenCodeReader"),
}
OTHER_IDS = frozenset({"qwen-code"})
"""The clients that give hooks another id of a call than their transcripts have."""
_SESSIONS = (".agent/sessions", "*.jsonl")
LONGEST = 64 * 1024 * 1024
"""The most bytes of a line."""
# The format of a file is recognised within so many lines.
_HEAD = 100


def open_reader(name: str, path: str) -> Reader:
    """Return a new reader of that name for a file.  Raises `KeyError` if `READERS` lacks it."""
    module, kind = READERS[name]
    reader: Reader = getattr(import_module(module), kind)(path)
    return reader


class BadLine(Struct, frozen=True):
    """A line that could not be read, and the reason."""

    error: str


class Transcript:
    """The file of a recorded session, to be read once: `for number, found in transcript`.

    Use it as a context manager, or close it.  Raises `TranscriptError` with the path when the file cannot be opened or is
    not a recorded session.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = open(path, "rb")  # noqa: SIM115  # closed on leaving
            self._database = False
            self._head: list[bytes | None] = []
            self.reader = self._recognised()
        # The file is closed, and the exception goes on to the caller, an OSError as a TranscriptError.
        except BaseException as exc:
            self.close()
            if isinstance(exc, OSError):
                raise TranscriptError(f"{path}: cannot be read: {os_reason(exc)}") from None
            raise

    def _recognised(self) -> Reader:
        if self._file.peek(len(MAGIC)).startswith(MAGIC):
            self._database = True
            return open_reader("opencode", self.path)
        readers = [open_reader(name, self.path) for name in READERS]
        for line in itertools.islice(_lines(self._file), _HEAD):
            self._head.append(line)
            for reader in readers:
                if line is not None and reader.recognises(line):
                    return reader
        # Old versions of Gemini CLI wrote one object over many lines.
        if self._head and None not in self._head:
            whole = b"".join(filter(None, self._head)) + self._file.read(LONGEST)
            for reader in readers:
                if len(whole) < LONGEST and reader.recognises(whole):
                    self._head = [whole]
                    return reader
        raise TranscriptError(
            f"{self.path}: is neither a transcript of an agent that is known nor a session of agent-hooks: "
            + (f"none of its first {len(self._head)} lines belongs to one" if self._head else "it is empty")
        )

    def close(self) -> None:
        """Close the file."""
        # A file that could not be opened is no attribute.
        with suppress(AttributeError):
            self._file.close()

    def __enter__(self) -> Transcript:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[int, RecordedCall | RecordedEnd | BadLine]]:
        """Yield the calls, their ends and the bad lines, with line numbers, in the order of the file.

        Raises `TranscriptError` when the file stops being readable.
        """
        lines: Iterator[bytes | None] = itertools.chain(self._head, _lines(self._file))
        if self._database:
            lines = (each.line for each in parts(self.path))
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
    """Yield the lines of a file, and `None` for a line that is too long."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
            yield None
        else:
            yield line


def find_transcripts(paths: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each file, and whether `paths` names it; for a directory, all `*.jsonl` files below it, sorted by path.

    In that order, the sub-agents of a session come right after it.  A file that is named twice comes once.
    """
    seen: set[str] = set()
    for path in paths:
        named = not os.path.isdir(path)
        found = [path] if named else _fitting(path, "**/*.jsonl")
        for each in found:
            if (real := os.path.realpath(each)) not in seen:
                seen.add(real)
                yield each, named


def find_standard(home: str, environ: Mapping[str, str], projects: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield the reader's name and the path of each transcript that agents keep in their standard places.

    `home`: the person's home directory; `projects`: directories with sessions of ours.
    """
    for name in READERS:
        place = open_reader(name, "").place
        if place is not None:
            directory = environ.get(place.variable) or os.path.join(home, place.default)
            yield from ((name, path) for path in _fitting(directory, place.pattern))
    for project in projects:
        yield from (("session", path) for path in _fitting(os.path.join(project, _SESSIONS[0]), _SESSIONS[1]))


def _fitting(directory: str, pattern: str) -> list[str]:
    # `glob` treats a directory that goes away as empty.  `Path.glob` raises.
    found = glob(os.path.join(escape(directory), pattern), recursive=True, include_hidden=True)
    return sorted(filter(os.path.isfile, found))
