"""Brings the index up to date with the files, and answers questions from it."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agent_hooks.errors import describe, os_reason
from agent_hooks.look.index.alone import Alone
from agent_hooks.look.index.book import Book, searchable
from agent_hooks.look.index.columns import BY_ORDER, FROM_TRANSCRIPT
from agent_hooks.look.index.files import (
    DATABASE,
    KIND,
    Found,
    RecordFiles,
    Source,
    Sources,
    is_same,
    mark_of,
    recorded_call,
    transcript_line,
)
from agent_hooks.look.index.records import RecordsReader, number_of
from agent_hooks.look.index.sessions import SessionsReader, found_sessions
from agent_hooks.look.index.store import Store, no_place
from agent_hooks.records.files import records_directory
from agent_hooks.records.keyed import KEY_FILE, Keyed, load_key
from agent_hooks.records.private import Cleaner, as_json
from agent_hooks.storage.files import StorageError
from agent_hooks.transcripts.base import TranscriptError

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor


DIRECTORY = "look"
"""The directory of the index below the agent home."""
# Rows that wait for one write.
_BATCH = 20_000
# Lines that one transaction takes, so that another process sees the index grow.
_PART = 200_000


class Changes(Struct, frozen=True, kw_only=True):
    """The effect of a refresh.

    `calls`: the rows that were added or changed; `total`: the number of rows; `version`: grows with each change;
    `more`: files are left to be read, because the time was over or another process writes the index now.
    """

    calls: Sequence[int]
    total: int
    version: int
    more: bool = False


class Index:
    """The index of one agent home, in its file or in memory.  It is not safe for threads; `View` has the lock.

    `user`: the person's home, below which the clients keep their transcripts; without it, only records are read.
    """

    def __init__(self, home: str, user: str | None = None, redactor: Redactor | None = None) -> None:
        self._home = home
        self._user = user
        self._redactor = redactor
        self._cleaners: dict[int, Cleaner] = {}
        self._store = Store(os.path.join(home, DIRECTORY))
        self._record_files = RecordFiles(records_directory(home))
        self._open()

    def _open(self) -> None:
        self.connection = self._store.connection
        self.book = Book(self.connection)
        self.sources = Sources(self.connection)
        self._keyed: Callable[[bytes], str] | None = None
        self._sessions = SessionsReader(self.book, self.sources, self.cleaner, self._digest)
        self._records = RecordsReader(self.book, self._alone, self._digest)

    def _alone(self, client: str, session: str) -> Alone:
        """Return the rows of a session that only its transcript has."""
        return Alone(self.book, client, session, self._digest_of)

    def _digest_of(self, row: int) -> int | None:
        """Return the digest of the input of a call in a transcript."""
        sql = """SELECT files.kind, path, places.at, call FROM places JOIN files USING (file) JOIN calls USING (row)
            WHERE row = ? AND places.kind = 'call'"""
        for kind, path, at, call in self.ask(sql, (row,)):
            found = recorded_call(kind, path, transcript_line(kind, path, at), call)
            if found is not None and (digest := self._digest(as_json(dict(found.input)))) is not None:
                return number_of(digest)
        return None

    def cleaner(self, limit: int) -> Cleaner:
        """Return the cleaner of texts of transcripts, which keeps `limit` characters of an input."""
        if self._redactor is None:
            # Imported here, because compiling its patterns takes a while.
            from agent_hooks.redaction import Redactor

            self._redactor = Redactor()
        if limit not in self._cleaners:
            self._cleaners[limit] = Cleaner(self._redactor, limit)
        return self._cleaners[limit]

    def _digest(self, data: bytes) -> str | None:
        """Return the keyed digest of an input; `None` as long as no record was written, so there is no key."""
        if self._keyed is None:
            directory = records_directory(self._home)
            if not os.path.exists(os.path.join(directory, KEY_FILE)):
                return None
            try:
                self._keyed = Keyed(load_key(directory))
            except StorageError:
                return None
        return self._keyed(data)

    @property
    def problem(self) -> str:
        """Why the index is kept in memory; empty if it is in its file."""
        return self._store.problem

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # ---- refreshing

    def refresh(self, seconds: float | None = None) -> Changes:
        """Read what was added to the files since the last time; `seconds`: go on later when it takes longer."""
        if self._store.is_gone:
            self._store.close()
            self._store = Store(os.path.join(self._home, DIRECTORY))
            self._open()
        until = None if seconds is None else time.monotonic() + seconds
        # Lines hold no cycles, and the search for garbage among them would take a third of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            return self._changes(self._tried(until))
        finally:
            if collects:
                gc.enable()

    def _tried(self, until: float | None) -> bool:
        """Take the new lines, if need be into a new index; return whether some are left."""
        try:
            return self._refreshed(until)
        except sqlite3.Error as exc:
            if no_place(exc):
                # The disk is full, or has become read-only.
                self._store.to_memory(exc)
            else:
                # The content is damaged, and all of it can be read again.
                self._store.renew()
        self._open()
        return self._refreshed(until)

    def _changes(self, more: bool) -> Changes:
        total = len(self.book.columns)
        return Changes(calls=self.book.take_changes(), total=total, version=self.book.version, more=more)

    def _refreshed(self, until: float | None) -> bool:
        """Take one part of the new lines after another; return whether some are left."""
        parts = 0
        while True:
            with self._store.writing() as mine:
                if not mine:
                    self._load()
                    return True
                self._load()
                done = self._part(until)
                if done and parts:
                    # A search in one piece; otherwise a later update would have to put the large pieces together.
                    self.book.merge_words()
            parts += 1
            if done or _is_over(until):
                return not done

    def _load(self) -> None:
        before = self.book.version
        self.book.load()
        if self.book.version != before or not self.sources.by_path:
            self.sources.load()

    def _part(self, until: float | None) -> bool:
        """Take the lines of one transaction; return whether all were taken."""
        found = list(self._found())
        gone = self.sources.by_path.keys() - {each.path for each in found}
        changed = bool(gone)
        if gone:
            self._remove([self.sources.by_path[path] for path in gone])
        lines = 0
        for each, source in self.sources.pending(found):
            changed = True
            for part in self._lines(each, source):
                lines += part
                if self.book.waiting >= _BATCH:
                    self.book.write_calls()
                if lines >= _PART or _is_over(until):
                    break
            else:
                continue
            self._flush()
            return False
        if changed:
            self._flush()
        return True

    def _flush(self) -> None:
        self.book.flush()
        self.sources.flush()

    def _found(self) -> Iterator[Found]:
        # The records come first, so that the calls of transcripts find them.
        yield from self._record_files.now()
        if self._user is not None:
            projects = {lane.project for lane in self.book.lanes if lane.client == "agent-hooks" and lane.project}
            yield from found_sessions(self._user, os.environ, projects)

    def _lines(self, found: Found, source: Source | None) -> Iterator[int]:
        """Take the new lines of a file; yield the number of lines of each part."""
        if source is not None and not is_same(source, found):
            self._remove([source])
            source = None
        if source is None:
            source = self.sources.begin(found)
        source.problem, source.written = "", found.written
        self.sources.note(source)
        reader = self._records if found.kind == KIND else self._sessions
        try:
            yield from reader.read(source, found)
        except (OSError, StorageError, TranscriptError) as exc:
            # The other files are read all the same.
            source.problem = os_reason(exc) if isinstance(exc, OSError) else describe(exc)
            source.size = found.size
        finally:
            # The offset in a database is a time.
            source.mark = "" if source.kind == DATABASE else mark_of(source.path, source.offset)

    def _remove(self, gone: Sequence[Source]) -> None:
        """Remove files that are gone, with their calls.

        A transcript that has one of these calls too is read again from its beginning.
        """
        ask, columns = self.connection.execute, self.book.columns
        self.book.write_calls()
        gone = [*gone, *self._joined_with(gone)]
        files = (json.dumps([source.file for source in gone]),)
        rows = {row for (row,) in ask("SELECT row FROM calls WHERE file IN (SELECT value FROM json_each(?))", files)}
        for row, kind in ask(
            "SELECT row, kind FROM places WHERE file IN (SELECT value FROM json_each(?))", files
        ).fetchall():
            if kind == "call" and columns.flags[row] & FROM_TRANSCRIPT:
                rows.add(row)
            elif kind == "call":
                columns.flags[row] &= ~BY_ORDER
                self.book.touch(row)
        self.book.remove(sorted(rows))
        ask("DELETE FROM places WHERE file IN (SELECT value FROM json_each(?))", files)
        ask("DELETE FROM saved WHERE file IN (SELECT value FROM json_each(?))", files)
        self.sources.forget(gone)

    def _joined_with(self, gone: Sequence[Source]) -> list[Source]:
        """Return the transcripts that have calls whose records are in these files."""
        numbers = {source.file for source in gone}
        sql = """SELECT DISTINCT places.file FROM places JOIN calls USING (row)
            WHERE places.kind = 'call' AND calls.file IN (SELECT value FROM json_each(?))"""
        joined = {file for (file,) in self.ask(sql, (json.dumps([*numbers]),))} - numbers
        return [source for source in self.sources.by_path.values() if source.file in joined]

    # ---- questions

    def number_of(self, row: int, id: str) -> int:
        """Return the number of a row among the rows with its id.  Recorded rows come first, as in `records`."""
        return self._rows_with(id).index(row) + 1

    def row_of(self, name: str) -> int | None:
        """Return the row of a call by its name, as `records` shows it."""
        own, _, number = name.partition(".")
        rows = self._rows_with(own)
        at = int(number or 1) - 1 if number.isdecimal() or not number else -1
        return rows[at] if 0 <= at < len(rows) else None

    def _rows_with(self, id: str) -> list[int]:
        return [row for (row,) in self.ask("SELECT row FROM calls WHERE id = ? ORDER BY file = 0, row", (id,))]

    def search(self, text: str, limit: int) -> list[int]:
        """Return the rows whose text holds all words, the newest row first."""
        return search(self.connection, text, limit)

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the answer to a question in SQL."""
        return self.connection.execute(sql, values).fetchall()


def _is_over(until: float | None, clock: Callable[[], float] = time.monotonic) -> bool:
    return until is not None and clock() >= until


_GROUP = 3
# Rows whose texts are looked at in one question, and at most.
_STEP = 200
_MOST = 20_000
_TEXTS = "SELECT row, command, more FROM calls WHERE row IN (SELECT value FROM json_each(?))"
# Bytes of a search that count.
_LONGEST = 400


def search(connection: sqlite3.Connection, text: str, limit: int) -> list[int]:
    """Return the rows whose command, tool, reason or hook holds all words of `text`, the newest row first."""
    words = list(dict.fromkeys(text.lower()[:_LONGEST].split()))
    query = _query(words)
    if not words or limit <= 0:
        return []
    if not query:
        rows = connection.execute("SELECT row FROM calls ORDER BY row DESC")
    else:
        rows = connection.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC", (query,))
    found: list[int] = []
    looked = 0
    while looked < _MOST and len(found) < limit and (part := [row for (row,) in islice(rows, _STEP)]):
        looked += len(part)
        texts = connection.execute(_TEXTS, (json.dumps(part),))
        known = {row: searchable(command, more) for row, command, more in texts}
        found += [row for row in part if all(word in known.get(row, "") for word in words)]
    return found[:limit]


def _query(words: list[str]) -> str:
    """Return the question for the groups of letters.  Words of one letter have none."""
    parts: dict[str, None] = {}
    for word in words:
        if len(word) == _GROUP - 1:
            # Alone, or at the beginning or the end of a word.
            parts[f"({_quoted(f' {word}')} OR {_quoted(f'{word} ')})"] = None
        for at in range(len(word) - _GROUP + 1):
            parts[_quoted(word[at : at + _GROUP])] = None
    return " AND ".join(parts)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
