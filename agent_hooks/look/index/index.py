"""Brings the index up to date with the files, and answers questions from it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from agent_hooks.errors import describe
from agent_hooks.look.index.book import Book
from agent_hooks.look.index.files import Found, Source, Sources, is_same
from agent_hooks.look.index.records import RecordsReader, found_records
from agent_hooks.look.index.searching import search
from agent_hooks.look.index.store import Store
from agent_hooks.records.files import records_directory
from agent_hooks.storage.files import StorageError

DIRECTORY = "look"
"""The directory of the index below the agent home."""
# Rows that wait for one write, and lines between two looks at the clock.
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
    """The index of one agent home, in its file or in memory.  It is not safe for threads; `View` has the lock."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._store = Store(os.path.join(home, DIRECTORY))
        self._reported = 0
        self._open()

    def _open(self) -> None:
        self.connection = self._store.connection
        self.book = Book(self.connection)
        self.sources = Sources(self.connection)
        self._records = RecordsReader(self.book)

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
            self._begin_again()
        until = None if seconds is None else time.monotonic() + seconds
        more = True
        try:
            more = self._refreshed(until)
        except sqlite3.OperationalError as exc:
            # The disk is full, or has become read-only.
            self._store.to_memory(exc)
            self._begin_again()
            more = self._refreshed(until)
        except sqlite3.DatabaseError:
            # The file is damaged; all of it can be read again.
            self._store.renew()
            self._begin_again()
            more = self._refreshed(until)
        return self._changes(more)

    def _begin_again(self) -> None:
        self._open()
        self._reported = 0

    def _changes(self, more: bool) -> Changes:
        total = len(self.book.columns)
        old = [row for row in self.book.take_changes() if row < self._reported]
        fresh = range(self._reported, total)
        self._reported = total
        return Changes(calls=[*old, *fresh] if old else fresh, total=total, version=self.book.version, more=more)

    def _refreshed(self, until: float | None) -> bool:
        """Take one part of the new lines after another; return whether some are left."""
        while True:
            with self._store.writing() as mine:
                if not mine:
                    self._load()
                    return True
                self._load()
                done = self._part(until)
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
        for path in gone:
            self._remove(self.sources.by_path[path])
        lines = 0
        for each, source in self.sources.pending(found):
            changed = True
            for _ in self._lines(each, source):
                lines += 1
                if self.book.waiting >= _BATCH:
                    self.book.write_calls()
                if lines % 1000 == 0 and (lines >= _PART or _is_over(until)):
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
        yield from found_records(records_directory(self._home))

    def _lines(self, found: Found, source: Source | None) -> Iterator[None]:
        """Take the new lines of a file, one by one."""
        if source is not None and not is_same(source, found):
            self._remove(source)
            source = None
        if source is None:
            source = self.sources.begin(found)
        source.problem = ""
        self.sources.note(source)
        try:
            yield from self._records.read(source, found)
        except StorageError as exc:
            source.problem, source.size = describe(exc), found.size

    def _remove(self, source: Source) -> None:
        """Remove a file that is gone, with its calls."""
        ask = self.connection.execute
        self.book.write_calls()
        rows = [row for (row,) in ask("SELECT row FROM calls WHERE file = ?", (source.file,))]
        self.book.remove(rows)
        ask("DELETE FROM places WHERE file = ?", (source.file,))
        self.sources.forget(source)

    # ---- questions

    def search(self, text: str, limit: int) -> list[int]:
        """Return the rows whose text holds all words, the newest row first."""
        return search(self.connection, text, limit)

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the answer to a question in SQL."""
        return self.connection.execute(sql, values).fetchall()


def _is_over(until: float | None, clock: Callable[[], float] = time.monotonic) -> bool:
    return until is not None and clock() >= until
