"""Takes the lines of record files into the book.

Their texts were redacted when they were written, so they need no second redaction, which takes longer than all the rest.
The lines of one call may come in any order and from several files; the first of them makes its row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from agent_hooks.look.index.alone import Alone
from agent_hooks.look.index.book import Book
from agent_hooks.look.index.columns import (
    ASKED,
    BY_ORDER,
    FROM_TRANSCRIPT,
    REDACTED,
    REWRITTEN,
    UNJUDGED,
    VERDICTS,
)
from agent_hooks.look.index.files import Found, Source
from agent_hooks.look.index.slim import (
    NO_CHANGES,
    PLAIN_RESULT,
    SlimAnswer,
    SlimDecision,
    SlimObserved,
    SlimQuestion,
    SlimResult,
    SlimSession,
    SlimTurn,
    plain_result,
    slim_line,
)
from agent_hooks.records.private import as_json
from agent_hooks.records.reading import LONGEST
from agent_hooks.server.calls import OWN
from agent_hooks.storage.files import open_regular
from agent_hooks.transcripts import OTHER_IDS
from agent_hooks.values.tool import call_line

_VERDICTS = {name: number for number, name in enumerate(VERDICTS)}
_SILENT = ("silent", "allow")
# Milliseconds by which a clock may be ahead of this machine's.
_AHEAD = 300_000.0
# Lines of a part.
_LINES = 1000
# Digits of a digest that make a number.
_DIGITS = 15
# Questions of handlers that wait for the line that tells their call.
_MOST_WAITING = 256


class RecordsReader:
    """Reads record files into a book.

    `alone`: returns the rows of a client's session that only its transcript has; `digest`: the keyed digest of an input.
    """

    def __init__(self, book: Book, alone: Callable[[str, str], Alone], digest: Callable[[bytes], str | None]) -> None:
        self._book = book
        self._make_alone = alone
        self._digest = digest
        self._alone: dict[tuple[str, str], Alone] = {}
        self._source: Source
        # The lines of questions that came before any line that names the tool, by id: offset, kind, milliseconds.
        self._waiting: dict[str, list[tuple[int, str, float]]] = {}
        self._latest = 0.0
        self._written = 0.0

    def read(self, source: Source, found: Found) -> Iterator[int]:
        """Take the new lines of a file; yields the number of lines of each part, so that the caller can write them.

        Raises `StorageError` when the file cannot be read.
        """
        self._source = source
        self._alone.clear()
        self._waiting = msgspec.json.decode(source.state or b"{}", type=dict[str, list[tuple[int, str, float]]])
        self._latest = time.time() * 1000 + _AHEAD
        self._written = found.written * 1000
        try:
            with open_regular(source.path, source.path) as file:
                file.seek(source.offset)
                while data := file.readline(LONGEST + 1):
                    if not data.endswith(b"\n") and len(data) <= LONGEST:
                        # Its writer may not have ended it.
                        break
                    at = source.offset
                    source.offset += len(data)
                    if len(data) > LONGEST:
                        source.offset += _skip(file)
                        source.bad += 1
                    else:
                        self._take(data, at)
                    source.line += 1
                    if source.line % _LINES == 0:
                        yield _LINES
                yield source.line % _LINES
        finally:
            source.size = found.size
            source.state = msgspec.json.encode(self._waiting).decode() if self._waiting else ""

    def _take(self, data: bytes, at: int) -> None:
        if data.startswith(PLAIN_RESULT) and (call := plain_result(data)):
            # The commonest line of all says nothing but that the call of a known row is over.
            row = self._book.recent(call)
            if row is not None:
                self._book.end(row, self._source.file, at)
                return
        line = slim_line(data)
        if isinstance(line, str):
            source = self._source
            source.bad += line == "bad"
            source.newer += line == "newer"
        elif isinstance(line, SlimDecision):
            self._decision(line, at)
        elif isinstance(line, SlimResult | SlimObserved):
            self._half(line, at)
        elif isinstance(line, SlimQuestion | SlimAnswer):
            self._question(line, at)
        elif isinstance(line, SlimSession):
            when = self._time(line)
            for hook in line.hooks:
                self._book.loaded("", hook.path, when)
            for guard in line.guards:
                self._book.loaded(guard, "", when)
        elif isinstance(line, SlimTurn) and line.event == "saved" and line.turn_id:
            changed = bool(line.files)
            self._book.end_turn(line.turn_id, line.session, self._source.file, at, changed=changed)

    def _time(self, line: Any) -> float:
        """Return the time of a line; one in the future counts as the time at which its file was written."""
        when: float = line.time.timestamp() * 1000
        if when <= self._latest:
            return when
        self._source.ahead += 1
        return min(self._written, self._latest)

    def _decision(self, line: SlimDecision, at: int) -> None:
        book = self._book
        when = self._time(line)
        tool = book.tool(line.tool)
        command = call_line(line.tool, line.input)
        call = client_call(line)
        digest = self._asked_digest(line, call)
        by = line.by
        if line.steps:
            names = [step.by for step in line.steps if step.answer not in _SILENT]
            if names:
                by = " ".join(dict.fromkeys([by, *names] if by else names))
        more = f"{line.native_tool} {line.reason} {by} {line.rule}".strip()
        row = book.row_of(line.id, line.session)
        verdict = _VERDICTS.get(line.verdict, UNJUDGED)
        columns = book.columns
        if row is None:
            row, call = self._adopted(line, call, tool, digest, when)
        lane = book.lane(line.client, line.session, line.agent)
        if row is None:
            row = book.add(line.id, lane, line.project, when, tool, verdict, call)
        else:
            book.move(row, lane)
            columns.time[row], columns.tool[row], columns.verdict[row] = when, tool, verdict
            # A transcript had the call first.
            columns.flags[row] &= ~FROM_TRANSCRIPT
        book.fill(row, self._source.file, at, call, digest, command, more)
        if line.turn_id:
            book.join_turn(row, line.turn_id, line.session)
        if line.id in self._waiting:
            for offset, kind, ms in self._waiting.pop(line.id):
                book.place(row, self._source.file, offset, kind)
                columns.wait_ms[row] += ms
                columns.flags[row] |= ASKED
        columns.hook_ms[row] += max(line.ms - columns.wait_ms[row], 0.0)
        flags = 0
        if line.rewrite is not NO_CHANGES:
            flags |= REWRITTEN
        if line.steps:
            flags |= book.figures.add(line.steps, when)
        if flags:
            columns.flags[row] |= flags

    def _half(self, line: SlimResult | SlimObserved, at: int) -> None:
        """Take the end of a call, or the line of its observers."""
        book = self._book
        row = self._row(line, at)
        if isinstance(line, SlimResult):
            book.end(row, self._source.file, at)
        else:
            book.place(row, self._source.file, at, "observed")
        flags = 0
        if line.steps:
            flags = book.figures.add(line.steps, book.columns.time[row])
            book.columns.hook_ms[row] += sum(step.ms for step in line.steps)
        if isinstance(line, SlimResult):
            if line.redacted:
                flags |= REDACTED
            if line.turn_id and not book.columns.turn[row]:
                book.join_turn(row, line.turn_id, line.session)
        if flags:
            book.columns.flags[row] |= flags
        book.touch(row)

    def _question(self, line: SlimQuestion | SlimAnswer, at: int) -> None:
        book = self._book
        kind = "question" if isinstance(line, SlimQuestion) else "answer"
        ms = line.ms or 0.0 if isinstance(line, SlimAnswer) else 0.0
        row = book.row_of(line.id, line.session) if not line.tool else self._row(line, at)
        if row is not None:
            if isinstance(line, SlimQuestion) and line.digest and not client_call(line):
                # The transcript may be read before the person has answered.
                book.digest(row, number_of(line.digest))
            book.place(row, self._source.file, at, kind)
            book.columns.wait_ms[row] += ms
            book.columns.flags[row] |= ASKED
            book.touch(row)
        elif len(self._waiting) < _MOST_WAITING:
            self._waiting.setdefault(line.id, []).append((at, kind, ms))

    def _row(self, line: Any, at: int) -> int:
        """Return the row of a call; make it when this is its first line."""
        book = self._book
        row = book.row_of(line.id, line.session)
        if row is None:
            when, tool, call = self._time(line), book.tool(line.tool), client_call(line)
            digest = number_of(line.digest) if isinstance(line, SlimQuestion) else None
            row, call = self._adopted(line, call, tool, digest, when)
            if row is None:
                lane = book.lane(line.client, line.session, line.agent)
                row = book.add(line.id, lane, line.project, when, tool, UNJUDGED, call)
        return row

    def _adopted(self, line: Any, call: str, tool: int, digest: int | None, time: float) -> tuple[int | None, str]:
        """Return the row that a transcript made for a call, now with the id of its record, and the client's id."""
        key = line.client, line.session
        alone = self._alone.get(key)
        if alone is None:
            alone = self._alone[key] = self._make_alone(*key)
        if alone.is_empty:
            return None, call
        book = self._book
        row = alone.by_call(call)
        if row is None and not call:
            row = alone.by_input(tool, digest, time)
            if row is not None:
                book.columns.flags[row] |= BY_ORDER
                call = book.call_of(row)
        if row is not None:
            book.adopt(row, line.id, book.lane(line.client, line.session, line.agent), line.project)
        return row, call

    def _asked_digest(self, line: SlimDecision, call: str) -> int | None:
        """Return the digest of the input as the model asked for it, as a number, for a call without the client's id."""
        if call or not line.digest:
            return None
        if line.rewrite is NO_CHANGES:
            return number_of(line.digest)
        # The digest is that of the changed input; the input of the record may lack a secret, and then has another one.
        digest = None if line.input_cut else self._digest(as_json(line.input))
        return None if digest is None else number_of(digest)


def client_call(line: Any) -> str:
    """Return the id of a call that the client's transcript has too; empty if hooks get another one, or none."""
    call: str = line.client_call
    return "" if call.startswith(OWN) or line.client in OTHER_IDS else call


def number_of(digest: str) -> int | None:
    """Return the beginning of a digest as a number, which takes less room in the index."""
    try:
        return int(digest[:_DIGITS], 16)
    except ValueError:
        return None


def _skip(file: Any) -> int:
    """Read past the rest of a line that is too long; return its length."""
    skipped = 0
    while rest := file.readline(LONGEST + 1):
        skipped += len(rest)
        if rest.endswith(b"\n"):
            break
    return skipped
