"""Reads the databases in which some agents keep their sessions; each row becomes a line of JSON for the reader."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from agent_hooks.transcripts.base import TranscriptError

MAGIC = b"SQLite format 3\0"
"""The beginning of a database."""
_PARTS = """
SELECT part.rowid, part.time_updated, part.time_created, part.session_id, session.parent_id, session.directory, part.data
FROM part JOIN session ON session.id = part.session_id
"""


class Part(NamedTuple):
    """A part of a message: its number in the database, the time in milliseconds at which it changed, and its line."""

    number: int
    changed: int
    line: bytes


def parts(path: str, since: int = 0) -> Iterator[Part]:
    """Yield the parts that changed at a time or later, in the order in which they changed; raises `TranscriptError`."""
    yield from _asked(path, f"{_PARTS} WHERE part.time_updated >= ? ORDER BY part.time_updated, part.rowid", since)


def part(path: str, number: int) -> bytes | None:
    """Return the line of one part; `None` if it is gone.  Raises `TranscriptError`."""
    return next((each.line for each in _asked(path, f"{_PARTS} WHERE part.rowid = ?", number)), None)


def _asked(path: str, sql: str, value: int) -> Iterator[Part]:
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
            for number, changed, created, session, parent, directory, data in connection.execute(sql, (value,)):
                time = datetime.fromtimestamp(created / 1000, UTC).isoformat()
                facts = {"session": session, "parent": parent, "directory": directory, "time": time}
                line = msgspec.json.encode({**facts, "part": msgspec.Raw(data.encode())})
                yield Part(number, changed, line)
    except (sqlite3.Error, TypeError, ValueError, OverflowError, AttributeError) as exc:
        raise TranscriptError(f"{path}: is no database of OpenCode's sessions, or cannot be read: {exc}") from None
