"""Reads record files, whole or damaged.

    directory = records_directory(agent_home())
    for path in files_of(directory, session):      # or `record_files(directory)` for all sessions
        for line in read_lines(path):
            print(line.n, line)

`read_lines` passes over any line that is none (half a line, zeros, another program's text), and over kinds of lines of a
later version.  `check_chain` finds the first damage of a file, and `read_heads` gives the
heads that the index knows, by file name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import BinaryIO

import msgspec
from msgspec import Struct

from agent_hooks.records.files import INDEX, parse_name, record_files
from agent_hooks.records.lines import AnyLine, Head, Tombstone
from agent_hooks.storage.digests import line_hash
from agent_hooks.storage.files import StorageError, open_regular, refusing

__all__ = [
    "LONGEST",
    "Damage",
    "check_chain",
    "decode_line",
    "link_of",
    "read_heads",
    "read_index",
    "read_lines",
    "record_files",
    "tail",
]


@cache
def _decoder() -> msgspec.json.Decoder[AnyLine]:
    """Return the decoder of all kinds of lines; to make it takes longer than to write a line."""
    return msgspec.json.Decoder(AnyLine)


LONGEST = 16 << 20
"""Bytes of a line that are read into memory; a writer's lines are far shorter."""


class Damage(Struct, frozen=True):
    """The first damage of a record file: a change since its writer wrote it.

    `kind`: `unfinished`, the file ends in a part of a line; `changed`, a line is no line, is out of order, or does not
    bear the hash of the line before; `line`: its number, from 1; `offset`: its first byte.
    """

    kind: str
    line: int
    offset: int


def decode_line(data: bytes) -> AnyLine | None:
    """Return a line; `None` for a text that is none, or of a kind that this version does not know."""
    try:
        return _decoder().decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def read_lines(path: str) -> Iterator[AnyLine]:
    """Yield the lines of a file that can be read, in order.  Raises `StorageError` when the file cannot be opened."""
    for _, data in raw_lines(path):
        if (line := decode_line(data)) is not None:
            yield line


def raw_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes of each line, with its newline unless it is unfinished.

    Of a line with more than `LONGEST` bytes, which no writer wrote, only the beginning is read into memory.
    """
    offset = 0
    with open_regular(path, path) as file, refusing("read", path):
        while data := file.readline(LONGEST + 1):
            yield offset, data
            offset += len(data)
            # The rest of a line that is too long.
            while len(data) > LONGEST and not data.endswith(b"\n"):
                data = file.readline(LONGEST + 1)
                offset += len(data)


def check_chain(path: str, seen: Callable[[int, str], object] | None = None, *, anchored: bool = True) -> Damage | None:
    """Return the first damage of a file's chain; `None` for a whole one.  Raises `StorageError`.

    A whole chain may still have been cut at its end, or rebuilt: only the heads in the index show that.  `seen` gets the
    number and the hash of each line before the damage; `anchored`: the first line bears the hash of the file's name,
    unlike that of an index that was compacted.
    """
    head = line_hash(os.fsencode(os.path.basename(path)))
    for number, (offset, data) in enumerate(raw_lines(path), 1):
        if len(data) > LONGEST:
            return Damage("changed", number, offset)
        if not data.endswith(b"\n"):
            return Damage("unfinished", number, offset)
        link = link_of(data)
        if link is None or link[1] != number or (link[0] != head and (anchored or number > 1)):
            return Damage("changed", number, offset)
        head = line_hash(data[:-1])
        if seen is not None:
            seen(number, head)
    return None


class _Link(Struct):
    """The fields of a line that chain it, of any kind and version."""

    prev: str
    n: int


@cache
def _link_decoder() -> msgspec.json.Decoder[_Link]:
    return msgspec.json.Decoder(_Link)


def link_of(data: bytes) -> tuple[str, int] | None:
    """Return the hash of the line before, and the number, that a line bears; `None` for a text that is no line."""
    try:
        link = _link_decoder().decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return link.prev, link.n


def read_index(directory: str) -> list[AnyLine]:
    """Return the lines of the index that can be read: heads, tombstones and notes; an absent index has none."""
    path = os.path.join(directory, INDEX)
    return list(read_lines(path)) if os.path.lexists(path) else []


def read_heads(directory: str) -> dict[str, Head]:
    """Return the last head of each file that the index knows and no tombstone names, by the file's name."""
    heads: dict[str, Head] = {}
    for line in read_index(directory):
        if isinstance(line, Head):
            heads[line.file] = line
        elif isinstance(line, Tombstone):
            for removed in line.files:
                heads.pop(removed.file, None)
    return heads


def tail(path: str) -> tuple[bytes, int, int]:
    """Return the last whole line of a file (empty if there is none), the offset behind it, and the file's size.

    The two numbers differ when the file ends in a part of a line.  A line with more than `LONGEST` bytes is empty.
    Raises `StorageError`.
    """
    with open_regular(path, path) as file, refusing("read", path):
        size = os.fstat(file.fileno()).st_size
        end = _behind_newline(file, size)
        start = _behind_newline(file, max(end - 1, 0))
        if end - start > LONGEST:
            return b"", end, size
        file.seek(start)
        return file.read(end - start), end, size


def _behind_newline(file: BinaryIO, end: int) -> int:
    """Return the offset behind the last newline before `end`; 0 if there is none."""
    window = 8192
    while end:
        begin = max(end - window, 0)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end, window = begin, 1 << 20
    return 0


def name_of_session(path: str) -> str:
    """Return the session in a record file: as its first line has it, else the stem of the file's name."""
    try:
        first = next(read_lines(path), None)
    except StorageError:
        first = None
    if first is not None and first.session:
        return first.session
    parsed = parse_name(os.path.basename(path))
    return parsed[0] if parsed else ""
