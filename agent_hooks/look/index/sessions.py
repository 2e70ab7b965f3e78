"""Takes the calls of transcripts into the book, and joins them with those of record files.

1. A call is found in the records by the client's own id of it.  Where an id is used again, the first call in the
   transcript is the first in the records.  A copy that the client wrote before the call's end is the same call.
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
from contextlib import suppress
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from agent_hooks.look.index.book import Book, Told
from agent_hooks.look.index.columns import BY_ORDER, FROM_TRANSCRIPT, UNJUDGED
from agent_hooks.look.index.files import DATABASE, Found, Source, Sources, recorded_call, stated, transcript_line
from agent_hooks.look.index.records import number_of
from agent_hooks.records.private import Cleaner, as_json
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import open_regular
from agent_hooks.transcripts import LONGEST, find_standard, open_reader
from agent_hooks.transcripts.base import Reader, RecordedCall, RecordedEnd, TranscriptError, is_streamed_copy
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
_PLACED = (
    "SELECT row, kind, file, at FROM places WHERE kind IN ('call', 'end') AND row IN (SELECT value FROM json_each(?))"
)


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
    changed = [0]
    for path in (found.path, f"{found.path}-wal"):
        with suppress(OSError):
            changed.append(os.stat(path).st_mtime_ns)
    return Found(found.path, found.kind, found.device, found.inode, max(changed), found.written)


class _Line(NamedTuple):
    """A line, or a part of a database: where it begins and ends, and its number."""

    data: bytes | None
    at: int
    end: int
    number: int


class _Session:
    """The rows of one session that a transcript's calls may belong to."""

    def __init__(self, book: Book, client: str, session: str) -> None:
        # The rows with the client's id of a call that no call of a transcript has yet, in their order.
        self.free: dict[str, deque[int]] = {}
        # The row of the last call with an id, and the rows of the calls with an id at a place of a file.
        self.last: dict[str, int] = {}
        self.at: dict[tuple[int, int, str], list[int]] = {}
        # The rows without an id of the client, by tool and digest, in their order.
        self.by_digest: dict[tuple[int, int], deque[int]] = {}
        # By row and kind: the last place of the line, as file and offset.
        self.placed: dict[tuple[int, str], tuple[int, int]] = {}
        rows = [row for lane in book.lanes_of(client, session) for row in book.rows_of(lane)]
        if not rows:
            return
        book.write_calls()
        chosen = (json.dumps(rows),)
        spots = book.connection.execute(f"{_PLACED} ORDER BY file, at", chosen).fetchall()
        self.placed = {(row, kind): (file, at) for row, kind, file, at in spots}
        calls = {}
        for row, call, digest in book.connection.execute(f"{_KNOWN} ORDER BY row", chosen):
            calls[row] = call
            if call and (row, "call") in self.placed:
                self.last[call] = row
            elif call:
                self.free.setdefault(call, deque()).append(row)
            elif digest is not None and (row, "call") not in self.placed:
                self.by_digest.setdefault((book.columns.tool[row], digest), deque()).append(row)
        for row, kind, file, at in spots:
            if kind == "call":
                self.at.setdefault((file, at, calls.get(row, "")), []).append(row)


class SessionsReader:
    """Reads transcripts into a book.  `digest`: returns the keyed digest of an input, `None` without a key."""

    def __init__(
        self, book: Book, sources: Sources, cleaner: Callable[[int], Cleaner], digest: Callable[[bytes], str | None]
    ) -> None:
        self._book = book
        self._sources = sources
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
        if source.state:
            # The new lines may begin with the end of a call.
            self._session(*json.loads(source.state))
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
                before = (other for other in found[:number] if isinstance(other, RecordedCall))
                nth = sum(other.tool_call_id == each.tool_call_id for other in before)
                if not self._call(reader, each, line, number, nth):
                    return False
            elif isinstance(each, RecordedEnd):
                self._end(reader, each, line)
        return True

    def _session(self, client: str, session: str) -> _Session:
        known = self._sessions.get((client, session))
        if known is None:
            known = self._sessions[client, session] = _Session(self._book, client, session)
            self._source.state = json.dumps([client, session])
        return known

    def _call(self, reader: Reader, call: RecordedCall, line: _Line, number: int, nth: int) -> bool:
        """Take the call at a place in a line, `nth` of the calls with its id there."""
        client, session = _CLIENTS.get(reader.name, reader.name), call.session_id or ""
        known, book = self._session(client, session), self._book
        name = call.tool_call_id
        rows = known.at.setdefault((self._source.file, line.at, name), []) if name else []
        if nth < len(rows):
            # The line was read before.
            self._fill(rows[nth], call)
            return True
        if name and not nth and (row := self._copied(known, call, line)) is not None:
            rows.append(row)
            return True
        row = known.free[name].popleft() if known.free.get(name) else self._by_order(known, call)
        if row is None:
            when = self._time(call)
            if when > (time.time() - _YOUNG) * 1000:
                return False
            row = self._add(known, client, session, call, when, f"{self._source.file}:{line.at}:{number}")
        rows.append(row)
        known.last[name] = row
        self._place(known, row, line, "call")
        book.touch(row)
        return True

    def _copied(self, known: _Session, call: RecordedCall, line: _Line) -> int | None:
        """Return the row of the call that this line has again, before its end perhaps with more text or less."""
        row, source = known.last.get(call.tool_call_id), self._source
        if row is None or (row, "call") not in known.placed:
            return None
        file, at = known.placed[row, "call"]
        path = next((each.path for each in self._sources.by_path.values() if each.file == file), "")
        # Both are read in the same way, because keys have the session where the reader knows it.
        lines = transcript_line(source.kind, path, at), line.data or b""
        before, now = (recorded_call(source.kind, path, each, call.tool_call_id) for each in lines)
        if before is None or now is None:
            return None
        is_fuller, is_shorter = is_streamed_copy(before, now), is_streamed_copy(now, before)
        if not (is_fuller and is_shorter) and ((row, "end") in known.placed or not (is_fuller or is_shorter)):
            return None
        if is_fuller and not is_shorter:
            self._fill(row, call)
            known.placed[row, "call"] = source.file, line.at
            self._book.place(row, source.file, line.at, "call", line.number)
        return row

    def _fill(self, row: int, call: RecordedCall) -> None:
        """Give a row that only the transcript has the text of a call."""
        if self._book.columns.flags[row] & FROM_TRANSCRIPT:
            self._book.fill(row, self._told(call))

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

    def _add(self, known: _Session, client: str, session: str, call: RecordedCall, when: float, name: str) -> int:
        """Add a row for a call that no record has; return its number."""
        book = self._book
        own = f"{session}\0{call.tool_call_id or name}".encode("utf-8", "surrogatepass")
        # The recorder of a bridge makes the same id, so a record that comes later finds this row.
        identity = sha256(own)[:18]
        clean = self._cleaner(_SHOWN)
        lane = book.lane(client, clean.text(session), clean.text(call.agent_id))
        row = book.row_of(identity, session)
        if row is None or (row, "call") in known.placed:
            tool, project = clean.text(call.tool_name), clean.text(call.cwd or "")
            row = book.add(identity, lane, project, when, book.tool(tool), UNJUDGED, self._told(call))
            book.columns.flags[row] |= FROM_TRANSCRIPT
        return row

    def _told(self, call: RecordedCall) -> Told:
        clean = self._cleaner(_SHOWN)
        shown, _ = clean.value(dict(call.input))
        line = call_line(clean.text(call.tool_name), shown)
        return Told(clean.text(call.tool_call_id), self._number(call), line)

    def _end(self, reader: Reader, end: RecordedEnd, line: _Line) -> None:
        for known in self._sessions.values():
            row = known.last.get(end.tool_call_id)
            if row is not None:
                self._place(known, row, line, "end")
                return

    def _place(self, known: _Session, row: int, line: _Line, kind: str) -> None:
        if (row, kind) not in known.placed:
            known.placed[row, kind] = self._source.file, line.at
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
