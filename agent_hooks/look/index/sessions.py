"""Takes the calls of transcripts into the book, and joins them with those of record files.

1. A call is the one in the records that bears the client's own id of it.
2. Records of a client that gives hooks no ids are joined by the session, the tool, the digest of the input and their
   order, and these rows are marked.
3. A call that no record has gets a row of its own.  One that is only seconds old waits for the next refresh, because its
   record may be written at this moment.
4. Transcripts of other agents are not redacted, so each text passes the redactor before it goes in.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from agent_hooks.look.index.book import Book, Told
from agent_hooks.look.index.columns import BY_ORDER, FROM_TRANSCRIPT, UNJUDGED
from agent_hooks.look.index.files import Found, Source, stated
from agent_hooks.look.index.lines import DATABASE
from agent_hooks.look.index.records import number_of
from agent_hooks.records.private import Cleaner, as_json
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import open_regular
from agent_hooks.transcripts import LONGEST, find_standard, open_reader
from agent_hooks.transcripts.base import Reader, RecordedCall, RecordedEnd, TranscriptError
from agent_hooks.transcripts.databases import parts
from agent_hooks.values.tool import call_line

MOST = 1 << 30
"""Bytes of a transcript that are read."""
OURS = "session"
"""The reader of our own sessions."""
_CLIENTS = {OURS: "agent-hooks"}
# Lines at the beginning that a reader sees again, because they name the session.
_HEAD = 20
_LINES = 500
# Seconds for which a call without a record waits for it.
_YOUNG = 10.0
# Characters of an input that are cleaned for the line of a call.
_SHOWN = 400
_KNOWN = "SELECT row, call, digest FROM calls WHERE row IN (SELECT value FROM json_each(?))"
_PLACED = "SELECT row, kind FROM places WHERE kind IN ('call', 'end') AND row IN (SELECT value FROM json_each(?))"


def found_sessions(home: str, environ: Mapping[str, str], projects: set[str]) -> Iterator[Found]:
    """Yield the transcripts of all clients on this machine."""
    for name, path in find_standard(home, environ, sorted(projects)):
        found = stated(path, name)
        if found is not None and name == DATABASE:
            found = _with_log(found)
        if found is not None:
            yield found


def _with_log(found: Found) -> Found:
    """Return a database with the time of its last change in the place of its size, which says little."""
    changed = [os.stat(path).st_mtime_ns for path in (found.path, f"{found.path}-wal") if os.path.exists(path)]
    return Found(found.path, found.kind, found.device, found.inode, max(changed, default=0), found.written)


class _Line(NamedTuple):
    """A line, or a part of a database: where it begins and ends, and its number."""

    data: bytes | None
    at: int
    end: int
    number: int


class _Session:
    """The rows of one session that a transcript's calls may belong to."""

    def __init__(self, book: Book, client: str, session: str) -> None:
        self.by_call: dict[str, int] = {}
        # The rows without an id of the client, by tool and digest, in their order.
        self.by_digest: dict[tuple[int, int], deque[int]] = {}
        self.placed: set[tuple[int, str]] = set()
        rows = [row for lane in book.lanes_of(client, session) for row in book.rows_of(lane)]
        if not rows:
            return
        book.write_calls()
        chosen = (json.dumps(rows),)
        self.placed = set(book.connection.execute(_PLACED, chosen))
        for row, call, digest in book.connection.execute(f"{_KNOWN} ORDER BY row", chosen):
            if call:
                self.by_call[call] = row
            elif digest is not None and (row, "call") not in self.placed:
                self.by_digest.setdefault((book.columns.tool[row], digest), deque()).append(row)


class SessionsReader:
    """Reads transcripts into a book.  `digest`: returns the keyed digest of an input, `None` without a key."""

    def __init__(self, book: Book, cleaner: Callable[[int], Cleaner], digest: Callable[[bytes], str | None]) -> None:
        self._book = book
        self._cleaner = cleaner
        self._digest = digest
        self._sessions: dict[tuple[str, str], _Session] = {}
        self._source: Source
        self._written = 0.0

    def read(self, source: Source, found: Found) -> Iterator[int]:
        """Take the new calls of a transcript; yields the number of lines of each part.

        Raises `StorageError` and `TranscriptError` when the file cannot be read.
        """
        self._source, self._written = source, found.written * 1000
        self._sessions.clear()
        reader = open_reader(source.kind, source.path)
        size = found.size
        try:
            for line in self._lines(reader, source):
                if line.data is None:
                    source.bad += 1
                elif not self._take(reader, line):
                    # The next refresh looks at it again.
                    size = -1
                    return
                source.offset, source.line = line.end, line.number
                if line.number % _LINES == 0:
                    yield _LINES
            yield source.line % _LINES
        finally:
            source.size = size

    def _lines(self, reader: Reader, source: Source) -> Iterator[_Line]:
        """Yield the lines behind the last one that was read."""
        if source.kind == DATABASE:
            for part in parts(source.path, source.offset):
                yield _Line(part.line, part.number, part.changed, source.line + 1)
            return
        with open_regular(source.path, source.path) as file:
            self._see_head(reader, file, source.offset)
            file.seek(source.offset)
            at, number = source.offset, source.line
            while data := file.readline(LONGEST):
                if not data.endswith(b"\n") and len(data) < LONGEST:
                    # Its writer has not ended it.
                    return
                whole = data.endswith(b"\n")
                end = at + len(data)
                while not data.endswith(b"\n") and (data := file.readline(LONGEST)):
                    end += len(data)
                number += 1
                yield _Line(data if whole else None, at, end, number)
                at = end
                if at >= MOST:
                    source.problem = "only the first GB of a transcript is read"
                    return

    def _see_head(self, reader: Reader, file: BinaryIO, end: int) -> None:
        """Show a reader the first lines again, of which it takes the session and the directory."""
        at = 0
        for _ in range(_HEAD):
            if at >= end or not (data := file.readline(LONGEST)):
                return
            at += len(data)
            try:
                reader.read(data)
            except TranscriptError:
                continue

    def _take(self, reader: Reader, line: _Line) -> bool:
        """Take the calls and ends of a line; return whether all could be taken now."""
        assert line.data is not None
        if not line.data.strip():
            return True
        try:
            found = reader.read(line.data)
        except TranscriptError:
            self._source.bad += 1
            return True
        for number, each in enumerate(found):
            if isinstance(each, RecordedCall):
                if not self._call(reader, each, line, number):
                    return False
            elif isinstance(each, RecordedEnd):
                self._end(reader, each, line)
        return True

    def _session(self, client: str, session: str) -> _Session:
        known = self._sessions.get((client, session))
        if known is None:
            known = self._sessions[client, session] = _Session(self._book, client, session)
        return known

    def _call(self, reader: Reader, call: RecordedCall, line: _Line, number: int) -> bool:
        client, session = _CLIENTS.get(reader.name, reader.name), call.session_id or ""
        known, book = self._session(client, session), self._book
        row = known.by_call.get(call.tool_call_id) if call.tool_call_id else None
        if row is None:
            row = self._by_order(known, call)
        if row is None:
            when = self._time(call)
            if when > (time.time() - _YOUNG) * 1000:
                return False
            row = self._add(client, session, call, when, f"{self._source.file}:{line.at}:{number}")
        if call.tool_call_id:
            known.by_call[call.tool_call_id] = row
        self._place(known, row, line, "call")
        book.touch(row)
        return True

    def _by_order(self, known: _Session, call: RecordedCall) -> int | None:
        """Return the first row without an id that has the same tool and input, and mark it."""
        if not known.by_digest:
            return None
        rows = known.by_digest.get((self._book.tool(call.tool_name), self._number(call) or 0))
        if not rows:
            return None
        row = rows.popleft()
        self._book.columns.flags[row] |= BY_ORDER
        self._book.name_call(row, self._cleaner(_SHOWN).text(call.tool_call_id))
        return row

    def _number(self, call: RecordedCall) -> int | None:
        """Return the digest of the input of a call as a number."""
        digest = self._digest(as_json(dict(call.input)))
        return None if digest is None else number_of(digest)

    def _add(self, client: str, session: str, call: RecordedCall, when: float, name: str) -> int:
        """Add a row for a call that no record has; return its number."""
        book = self._book
        own = f"{session}\0{call.tool_call_id or name}".encode("utf-8", "surrogatepass")
        # The recorder of a bridge makes the same id, so a record that comes later finds this row.
        identity = sha256(own)[:18]
        clean = self._cleaner(_SHOWN)
        lane = book.lane(client, clean.text(session), clean.text(call.agent_id))
        row = book.row_of(identity, session)
        if row is None:
            tool = clean.text(call.tool_name)
            own_id, project = clean.text(call.tool_call_id), clean.text(call.cwd or "")
            shown, _ = clean.value(dict(call.input))
            told = Told(own_id, self._number(call), call_line(tool, shown))
            row = book.add(identity, lane, project, when, book.tool(tool), UNJUDGED, told)
            book.columns.flags[row] |= FROM_TRANSCRIPT
        return row

    def _end(self, reader: Reader, end: RecordedEnd, line: _Line) -> None:
        for known in self._sessions.values():
            row = known.by_call.get(end.tool_call_id)
            if row is not None:
                self._place(known, row, line, "end")
                return

    def _place(self, known: _Session, row: int, line: _Line, kind: str) -> None:
        if (row, kind) not in known.placed:
            known.placed.add((row, kind))
            self._book.place(row, self._source.file, line.at, kind, line.number)

    def _time(self, call: RecordedCall) -> float:
        """Return the time of a call in milliseconds; that of the file's last change where it has none, or a later one."""
        try:
            when = datetime.fromisoformat(call.time or "")
        except ValueError:
            return self._written
        found = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000
        if found > self._written + 300_000:
            self._source.ahead += 1
            return self._written
        return found
