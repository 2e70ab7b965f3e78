"""The book: the part of the index that is in memory, and the rows that wait to be written.

Its columns, lanes and tools are those of the file as of its `version`.  Another process may have written a later one, so
a refresh reads what has changed before it adds anything.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import Struct

from agent_hooks.look.index import figures
from agent_hooks.look.index.columns import CHUNK, FROM_TRANSCRIPT, GONE, Columns, Turns
from agent_hooks.look.index.figures import Figures

# Ids of calls that are kept to find their rows without a question to the file.
_MOST_RECENT = 300_000
# The highest number of a tool.
_MOST_TOOLS = 65_535
OTHER_TOOL = "(other tools)"
"""The name that stands for all tools after the first 65,535."""


class Lane(Struct):
    """The calls of one agent in one session, in the rows from `low` to `high`; times in milliseconds since 1970."""

    client: str
    session: str
    agent: str
    project: str = ""
    first: float = 0.0
    last: float = 0.0
    calls: int = 0
    low: int = 0
    high: int = 0


class Told(NamedTuple):
    """The facts of a call that its row has in the file alone.

    `call`: the client's id of it; `digest`: that of its input, as a number; `command`, `more`: the texts of the search;
    `file`, `at`: the place of its decision.
    """

    call: str = ""
    digest: int | None = None
    command: str = ""
    more: str = ""
    file: int = 0
    at: int = 0


class Book:
    """The parts in memory; `add` and the other writers change them, and `flush` writes the changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.version = 0
        self.columns = Columns()
        self.lanes: list[Lane] = []
        self.tools: list[str] = []
        self.figures = Figures()
        self._turns = Turns(connection)
        # The rows that the file has.
        self._flushed = 0
        # The rows before `reported` that were changed since `take_changes`.
        self.reported = 0
        self.changed: set[int] = set()
        self._lane_of: dict[tuple[str, str, str], int] = {}
        self._lanes_of: dict[tuple[str, str], list[int]] = {}
        self._tool_of: dict[str, int] = {}
        self._recent: dict[str, int] = {}
        # The sessions all of whose rows are among the recent ones.
        self._whole: set[str] = set()
        self._known: set[str] = set()
        self._dirty_chunks: set[int] = set()
        self._dirty_lanes: set[int] = set()
        self._new_tools: list[tuple[int, str]] = []
        self._hooks: dict[tuple[str, str], float] = {}
        # By row.
        self._calls: dict[int, list[Any]] = {}
        self._words: dict[int, str] = {}
        self._places: list[tuple[int, int, int, str, int]] = []

    # ---- reading

    def load(self) -> None:
        """Read what another process has written since this book's version."""
        ask = self.connection.execute
        row = ask("SELECT value FROM facts WHERE name = 'version'").fetchone()
        version = row[0] if row is not None else 0
        if version == self.version:
            return
        lanes = ask("SELECT client, session, agent, project, first, last, calls, low, high FROM lanes ORDER BY lane")
        self.lanes = [Lane(*each) for each in lanes]
        self.tools = [name for (name,) in ask("SELECT name FROM tools ORDER BY tool")]
        self._lane_of = {(lane.client, lane.session, lane.agent): at for at, lane in enumerate(self.lanes)}
        self._tool_of = {name: at for at, name in enumerate(self.tools)}
        self._known = {lane.session for lane in self.lanes}
        self._lanes_of = {}
        for number, lane in enumerate(self.lanes):
            self._lanes_of.setdefault((lane.client, lane.session), []).append(number)
        self._recent.clear()
        self._whole.clear()
        self._turns.load()
        sql = "SELECT chunk, time, lane, tool, verdict, hook_ms, wait_ms, flags, turn FROM chunks WHERE version > ?"
        for number, *parts in ask(f"{sql} ORDER BY chunk", (self.version,)):
            self.columns.put(number, parts)
            # Some of them may be the same as before; the readers look at them once more.
            self.changed.update(range(number * CHUNK, min(self.reported, (number + 1) * CHUNK)))
        self.version, self._flushed = version, len(self.columns)

    # ---- lanes, tools, rows

    def lane(self, client: str, session: str, agent: str) -> int:
        """Return the number of a lane."""
        key = (client, session, agent)
        number = self._lane_of.get(key)
        if number is None:
            number = self._lane_of[key] = len(self.lanes)
            self.lanes.append(Lane(client, session, agent))
            self._lanes_of.setdefault((client, session), []).append(number)
            if session not in self._known:
                self._known.add(session)
                self._whole.add(session)
        return number

    def lanes_of(self, client: str, session: str) -> list[int]:
        """Return the lanes of a session."""
        return self._lanes_of.get((client, session), [])

    def tool(self, name: str) -> int:
        """Return the number of a tool."""
        number = self._tool_of.get(name)
        if number is None:
            if len(self.tools) >= _MOST_TOOLS:
                return self.tool(OTHER_TOOL) if OTHER_TOOL in self._tool_of else _MOST_TOOLS - 1
            number = self._tool_of[name] = len(self.tools)
            self.tools.append(name)
            self._new_tools.append((number, name))
        return number

    def row_of(self, id: str, session: str) -> int | None:
        """Return the row of the last call with an id that was judged, or else of a call with it."""
        row = self._recent.get(id)
        if row is None and session not in self._whole:
            # The rows that wait to be written are recent ones.
            sql = "SELECT row FROM calls WHERE id = ? ORDER BY file = 0, row DESC"
            found = self.connection.execute(sql, (id,)).fetchone()
            row = None if found is None else found[0]
        return row

    def rows_with(self, id: str) -> list[int]:
        """Return all rows with an id, in order."""
        self.write_calls()
        return [row for (row,) in self.connection.execute("SELECT row FROM calls WHERE id = ? ORDER BY row", (id,))]

    def begin_call(self, id: str, row: int) -> None:
        """Note that the next lines with an id belong to a row."""
        self._recent[id] = row

    def recent(self, id: str) -> int | None:
        """Return the row of a call whose lines came a short time ago."""
        return self._recent.get(id)

    def add(self, id: str, lane: int, project: str, time: float, tool: int, verdict: int, told: Told) -> int:
        """Add a row, and return its number."""
        row = len(self.columns.time)
        self.columns.add(time, lane, tool, verdict)
        if len(self._recent) >= _MOST_RECENT:
            self.write_calls()
            self._forget_recent()
        if told.file or id not in self._recent:
            self._recent[id] = row
        self._calls[row] = [row, id, lane, *told, 0, 0]
        if told.command:
            self._words[row] = searchable(told.command, told.more)
        place = self.lanes[lane]
        if not place.calls:
            place.low, place.first = row, time
        elif time < place.first:
            place.first = time
        place.calls += 1
        place.high = row
        if time > place.last:
            place.last = time
        if project:
            place.project = project
        return row

    def adopt(self, row: int, id: str, lane: int, project: str) -> None:
        """Give a row that a transcript made, and that is written, to the record of its call."""
        self._recent[id] = row
        self.connection.execute("UPDATE calls SET id = ? WHERE row = ?", (id, row))
        self.move(row, lane)
        if project:
            self.lanes[lane].project = project
        self.columns.flags[row] &= ~FROM_TRANSCRIPT
        self.touch(row)

    def move(self, row: int, lane: int) -> None:
        """Put a row into another lane."""
        before = self.columns.lane[row]
        if before == lane:
            return
        self.columns.lane[row] = lane
        fields = self._calls.get(row)
        if fields is not None:
            fields[2] = lane
        else:
            self.connection.execute("UPDATE calls SET lane = ? WHERE row = ?", (lane, row))
        self.lanes[before].calls -= 1
        place, time = self.lanes[lane], self.columns.time[row]
        known = place if place.calls else Lane("", "", "", first=time, last=time, low=row, high=row)
        place.low, place.high = min(known.low, row), max(known.high, row)
        place.first, place.last = min(known.first, time), max(known.last, time)
        place.calls += 1
        self._dirty_lanes.update((before, lane))

    def digest(self, row: int, digest: int | None) -> None:
        """Note the digest of the input of a row that has no decision yet."""
        fields = self._calls.get(row)
        if fields is not None:
            fields[4] = digest
        else:
            self.connection.execute("UPDATE calls SET digest = ? WHERE row = ?", (digest, row))

    def join_turn(self, row: int, turn: str, session: str) -> None:
        """Note the turn of a row by its id."""
        self._turns.join(self.columns, row, turn, is_new=session in self._whole)

    def end_turn(self, turn: str, session: str, place: tuple[int, int], *, changed: bool, marked: bool) -> None:
        """Note the line that has the files of a turn, by file and offset."""
        is_new = session in self._whole
        for row in self._turns.saved(self.columns, turn, place, changed=changed, marked=marked, is_new=is_new):
            self.touch(row)

    def _forget_recent(self) -> None:
        """Keep no ids in memory."""
        self._recent.clear()
        self._whole.clear()
        self._turns.forget()

    def fill(self, row: int, told: Told) -> None:
        """Give a row its text and the place of its decision."""
        fields = self._calls.get(row)
        if fields is not None:
            fields[3:9] = told
        else:
            self._forget_words(row)
            sql = "UPDATE calls SET call = ?, digest = ?, command = ?, more = ?, file = ?, at = ? WHERE row = ?"
            self.connection.execute(sql, (*told, row))
        self._words[row] = searchable(told.command, told.more)
        self.touch(row)

    def _forget_words(self, row: int) -> None:
        """Take the text of a row, which is written, out of the search."""
        self.write_calls()
        old = self.connection.execute("SELECT command, more FROM calls WHERE row = ?", (row,)).fetchone()
        if old is not None and old[0]:
            sql = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"
            self.connection.execute(sql, (row, searchable(*old)))

    def end(self, row: int, file: int, at: int) -> None:
        """Note the line of a call's result."""
        fields = self._calls.get(row)
        if fields is not None:
            fields[9:11] = file, at
        else:
            self.connection.execute("UPDATE calls SET end_file = ?, end_at = ? WHERE row = ?", (file, at, row))

    def place(self, row: int, file: int, at: int, kind: str, line: int = 0) -> None:
        """Note one more line of a call: the file, the offset, and the number where the line itself has none."""
        self._places.append((row, file, at, kind, line))

    def has_alone(self) -> bool:
        """Tell whether a row that is written has no decision."""
        return self.connection.execute("SELECT 1 FROM calls WHERE file = 0 LIMIT 1").fetchone() is not None

    def call_of(self, row: int) -> str:
        """Return the client's id of a call whose row is written."""
        found: str = self.connection.execute("SELECT call FROM calls WHERE row = ?", (row,)).fetchone()[0]
        return found

    def name_call(self, row: int, call: str) -> None:
        """Note the client's id of a call that the record has not."""
        fields = self._calls.get(row)
        if fields is not None:
            fields[3] = call
        else:
            self.connection.execute("UPDATE calls SET call = ? WHERE row = ?", (call, row))

    def rows_of(self, lane: int) -> list[int]:
        """Return the rows of a lane that are there."""
        place, lanes, verdicts = self.lanes[lane], self.columns.lane, self.columns.verdict
        rows, at, end = [], place.low, place.high + 1
        # The rows of other lanes lie between them, and `index` passes over those quickly.
        with suppress(ValueError):
            while at < end:
                at = lanes.index(lane, at, end)
                if verdicts[at] != GONE:
                    rows.append(at)
                at += 1
        return rows

    def touch(self, row: int) -> None:
        """Note that the columns of a row have changed."""
        self._dirty_chunks.add(row // CHUNK)
        if row < self.reported:
            self.changed.add(row)

    def loaded(self, hook: str, path: str, time: float) -> None:
        """Note that a session has loaded a hook or guard."""
        key = (hook, path)
        if time > self._hooks.get(key, 0.0):
            self._hooks[key] = time

    # ---- removing

    def remove(self, rows: Iterable[int]) -> None:
        """Remove rows, so that no question finds them and no text of theirs is left."""
        self.write_calls()
        ask = self.connection.execute
        ask("PRAGMA secure_delete=ON")
        for row in rows:
            found = ask("SELECT lane FROM calls WHERE row = ?", (row,)).fetchone()
            if found is None:
                continue
            self._forget_words(row)
            ask("DELETE FROM calls WHERE row = ?", (row,))
            ask("DELETE FROM places WHERE row = ?", (row,))
            self.columns.verdict[row] = GONE
            self.lanes[found[0]].calls -= 1
            self._dirty_lanes.add(found[0])
            self.touch(row)
        # The groups of letters of the removed texts leave the pages of the search too.
        self.merge_words()
        ask("PRAGMA secure_delete=OFF")
        self._forget_recent()

    def merge_words(self) -> None:
        """Put the pieces of the search together."""
        self.connection.execute("INSERT INTO words (words) VALUES ('optimize')")

    # ---- writing

    def write_calls(self) -> None:
        """Write the rows that wait."""
        many = self.connection.executemany
        if self._calls:
            many("INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._calls.values())
            self._calls.clear()
        if self._words:
            many("INSERT INTO words (rowid, text) VALUES (?, ?)", self._words.items())
            self._words.clear()
        if self._places:
            many("INSERT INTO places VALUES (?, ?, ?, ?, ?)", self._places)
            self._places.clear()

    @property
    def waiting(self) -> int:
        """The number of rows that wait."""
        return len(self._calls) + len(self._places)

    def flush(self) -> None:
        """Write all changes, under the next version."""
        self.write_calls()
        ask, many = self.connection.execute, self.connection.executemany
        self.version += 1
        # The rows that are new since the last time, with their chunks and lanes.
        total = len(self.columns)
        if total > self._flushed:
            self._dirty_lanes.update(self.columns.lane[self._flushed :])
            self._dirty_chunks.update(range(self._flushed // CHUNK, (total - 1) // CHUNK + 1))
            self._flushed = total
        many("INSERT INTO tools VALUES (?, ?)", self._new_tools)
        rows = (
            (at, (lane := self.lanes[at]).client, *(getattr(lane, name) for name in Lane.__struct_fields__[1:]))
            for at in self._dirty_lanes
        )
        many("INSERT OR REPLACE INTO lanes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        chunks = ((number, self.version, *self.columns.chunk(number)) for number in self._dirty_chunks)
        many("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", chunks)
        self._turns.write()
        sql = "INSERT INTO hooks VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET last = max(last, excluded.last)"
        many(sql, ((*key, time) for key, time in self._hooks.items()))
        self._flush_figures()
        ask("INSERT OR REPLACE INTO facts VALUES ('version', ?)", (self.version,))
        self._new_tools.clear()
        self._dirty_lanes.clear()
        self._dirty_chunks.clear()
        self._hooks.clear()

    def _flush_figures(self) -> None:
        for key, counts in self.figures.take().items():
            sql = "SELECT counts FROM figures WHERE hook = ? AND path = ? AND hour = ?"
            old = self.connection.execute(sql, key).fetchone()
            sums = counts if old is None else figures.total((counts, figures.from_bytes(old[0])))
            self.connection.execute("INSERT OR REPLACE INTO figures VALUES (?, ?, ?, ?)", (*key, sums.tobytes()))

    def take_changes(self) -> Sequence[int]:
        """Return the rows that were added or changed since the last time, in order."""
        fresh = range(self.reported, len(self.columns))
        changed, self.changed = sorted(self.changed), set()
        self.reported = len(self.columns)
        return [*changed, *fresh] if changed else fresh


def searchable(command: str, more: str) -> str:
    """Return the text of a call that a search looks at; the spaces let words of two letters be found."""
    return f" {command} {more} ".lower()
