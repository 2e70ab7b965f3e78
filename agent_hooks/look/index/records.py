"""Takes the lines of record files into the book.

Their texts were redacted when they were written, so they need no second redaction, which takes longer than all the rest.
The lines of one call may come in any order and from several files; the first of them makes its row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import msgspec

from agent_hooks.look.index.alone import Alone
from agent_hooks.look.index.book import Book, Told
from agent_hooks.look.index.columns import (
    ASKED,
    BLOCK,
    BY_ORDER,
    FROM_TRANSCRIPT,
    MAY_CHANGE,
    OVERRULED,
    REDACTED,
    REWRITTEN,
    UNJUDGED,
    VERDICTS,
)
from agent_hooks.look.index.files import Found, Source
from agent_hooks.look.index.slim import (
    FAILURES,
    NO_CHANGES,
    Slim,
    SlimAnswer,
    SlimDecision,
    SlimObserved,
    SlimQuestion,
    SlimResult,
    SlimSession,
    SlimTurn,
    decoder,
    reason,
)
from agent_hooks.records.lines import VERSION
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
# Lines of a part, and bytes of a block.
_LINES = 1000
_BLOCK = 1 << 20
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
        # The rows that only transcripts have, by client and session, and whether there are any.
        self._alone: dict[tuple[str, str], Alone] = {}
        self._has_alone = False
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
        self._has_alone = self._book.has_alone()
        self._waiting = msgspec.json.decode(source.state or b"{}", type=dict[str, list[tuple[int, str, float]]])
        self._latest = time.time() * 1000 + _AHEAD
        self._written = found.written * 1000
        try:
            with open_regular(source.path, source.path) as file:
                # Lines are read and cut in blocks, because a million single reads take seconds.
                while block := _block(file, source.offset):
                    end = block.rfind(b"\n")
                    if end >= 0:
                        lines = block[:end].split(b"\n")
                        for begin in range(0, len(lines), _LINES):
                            self._take_all(lines[begin : begin + _LINES])
                            yield len(lines[begin : begin + _LINES])
                    elif len(block) < _BLOCK or not self._take_long(file):
                        # The writer of the last line may not have ended it.
                        break
                    else:
                        yield 1
        finally:
            source.size = found.size
            source.state = msgspec.json.encode(self._waiting).decode() if self._waiting else ""

    def _take_all(self, lines: Sequence[bytes]) -> None:
        """Take lines, which are cut at their newlines."""
        source, decode, take = self._source, decoder().decode, self._take
        at, taken = source.offset, 0
        try:
            for data in lines:
                here, at, taken = at, at + len(data) + 1, taken + 1
                try:
                    line = decode(data)
                except FAILURES:
                    self._refuse(data)
                else:
                    take(line, here)
        finally:
            source.offset, source.line = at, source.line + taken

    def _take_long(self, file: BinaryIO) -> bool:
        """Take a line that is longer than a block; return whether its end is there."""
        source = self._source
        file.seek(source.offset)
        data = file.readline(LONGEST + 1)
        size = len(data)
        while not data.endswith(b"\n") and (rest := file.readline(_BLOCK)):
            size += len(rest)
            data = rest
        if not data.endswith(b"\n"):
            return False
        if size <= LONGEST:
            self._take_all([data[:-1]])
        else:
            source.bad += 1
            source.offset, source.line = source.offset + size, source.line + 1
        return True

    def _refuse(self, data: bytes) -> None:
        why = reason(data)
        self._source.bad += why == "bad"
        self._source.newer += why == "newer"

    def _take(self, line: Slim, at: int) -> None:
        if line.v > VERSION:
            self._source.newer += 1
        elif isinstance(line, SlimResult) and not line.steps and not line.redacted:
            # The commonest line of all says nothing but that the call of a known row is over.
            row = self._book.recent(line.id)
            columns = self._book.columns
            if row is None or columns.verdict[row] == BLOCK or (line.turn_id and not columns.turn[row]):
                self._half(line, at)
            else:
                self._book.end(row, self._source.file, at)
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
            place = self._source.file, at
            self._book.end_turn(line.turn_id, line.session, place, changed=bool(line.files), marked=line.marked)

    def _time(self, line: Any) -> float:
        """Return the time of a line; one in the future counts as the time at which its file was written."""
        when: float = line.time.timestamp() * 1000
        if when <= self._latest:
            return when
        self._source.ahead += 1
        return min(self._written, self._latest)

    def _decision(self, line: SlimDecision, at: int) -> None:
        book = self._book
        columns, file = book.columns, self._source.file
        when = self._time(line)
        call, tool, verdict = client_call(line), book.tool(line.tool), _VERDICTS.get(line.verdict, UNJUDGED)
        digest = None if call else self._asked_digest(line)
        row = self._known(line)
        if row is None and self._has_alone:
            row, call = self._adopted(line, call, tool, digest, when)
        lane = book.lane(line.client, line.session, line.agent)
        told = Told(call, digest, call_line(line.tool, line.input), _more(line), file, at)
        if row is None:
            row = book.add(line.id, lane, line.project, when, tool, verdict, told)
        else:
            book.begin_call(line.id, row)
            book.move(row, lane)
            columns.time[row], columns.tool[row], columns.verdict[row] = when, tool, verdict
            # A transcript had the call first.
            columns.flags[row] &= ~FROM_TRANSCRIPT
            book.fill(row, told)
        if line.may_change:
            columns.flags[row] |= MAY_CHANGE
        if line.turn_id:
            book.join_turn(row, line.turn_id, line.session)
        for offset, kind, ms in self._waiting.pop(line.id, ()) if self._waiting else ():
            book.place(row, file, offset, kind)
            columns.wait_ms[row] += ms
            columns.flags[row] |= ASKED
        columns.hook_ms[row] += max(line.ms - columns.wait_ms[row], 0.0)
        flags = book.figures.add(line.steps, when) if line.steps else 0
        if line.rewrite is not NO_CHANGES:
            flags |= REWRITTEN
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
            # The block has its own result.  A tool's result comes only if something else let the call run.
            if line.status == "ok" and book.columns.verdict[row] == BLOCK:
                book.columns.verdict[row] = OVERRULED
            if line.turn_id and not book.columns.turn[row]:
                book.join_turn(row, line.turn_id, line.session)
        if flags:
            book.columns.flags[row] |= flags
        book.touch(row)

    def _question(self, line: SlimQuestion | SlimAnswer, at: int) -> None:
        book = self._book
        kind = "question" if isinstance(line, SlimQuestion) else "answer"
        ms = line.ms or 0.0 if isinstance(line, SlimAnswer) else 0.0
        row = self._known(line) if not line.tool else self._row(line, at)
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
        row = self._known(line)
        if row is None:
            when, tool, call = self._time(line), book.tool(line.tool), client_call(line)
            digest = number_of(line.digest) if isinstance(line, SlimQuestion) else None
            if self._has_alone:
                row, call = self._adopted(line, call, tool, digest, when)
            if row is None:
                lane = book.lane(line.client, line.session, line.agent)
                row = book.add(line.id, lane, line.project, when, tool, UNJUDGED, Told(call))
        return row

    def _known(self, line: Any) -> int | None:
        """Return the row that a line belongs to.  A line that begins a call belongs to none that was judged."""
        book, columns = self._book, self._book.columns
        row = book.row_of(line.id, line.session)
        begins = isinstance(line, SlimDecision) or (isinstance(line, SlimQuestion) and line.about == "call")
        if row is None or not begins or not (columns.verdict[row] != UNJUDGED or columns.flags[row] & FROM_TRANSCRIPT):
            return row
        return next((each for each in book.rows_with(line.id) if columns.verdict[each] == UNJUDGED), None)

    def _adopted(self, line: Any, call: str, tool: int, digest: int | None, time: float) -> tuple[int | None, str]:
        """Return the row that a transcript made for a call, now with the id of its record, and the client's id."""
        key = line.client, line.session
        if key not in self._alone:
            self._alone[key] = self._make_alone(*key)
        alone = self._alone[key]
        if not alone:
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

    def _asked_digest(self, line: SlimDecision) -> int | None:
        """Return the digest of the input as the model asked for it, as a number."""
        if not line.digest:
            return None
        if line.rewrite is NO_CHANGES:
            return number_of(line.digest)
        # The digest is that of the changed input; the input of the record may lack a secret, and then has another one.
        digest = None if line.input_cut else self._digest(as_json(line.input))
        return None if digest is None else number_of(digest)


def _more(line: SlimDecision) -> str:
    """Return the texts of a decision, beside its command, that a search looks at."""
    by = line.by
    names = [step.by for step in line.steps if step.answer not in _SILENT]
    if names:
        by = " ".join(dict.fromkeys([by, *names] if by else names))
    return f"{line.native_tool} {line.reason} {by} {line.rule}".strip()


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


def _block(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.read(_BLOCK)
