"""The turns of the index: the rows of each, whether it changed files, and the lines that name these files.

A call and the files of its turn may stand in files of different processes, in any order.  So each row has the number of
its turn, and a turn has the first and the last row that belongs to it; other rows may lie between them.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from agent_hooks.look.index.columns import CHANGED_FILES, MAY_CHANGE, Columns


class Turn(Struct):
    """A turn: its number, the first and the last row of it, and whether it changed files.

    `marked`: its calls that may have changed them have `MAY_CHANGE`; those of older records have not.
    """

    number: int
    low: int = -1
    high: int = -1
    changed: bool = False
    marked: bool = False

    def flag(self, flags: int) -> int:
        """Return the flags of one of its calls, once its files are known."""
        return flags | CHANGED_FILES if self.changed and (flags & MAY_CHANGE or not self.marked) else flags


class Turns:
    """The turns of one index; those of late are in memory."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._recent: dict[str, Turn] = {}
        self._dirty: set[str] = set()
        self._saved: list[tuple[int, int, int]] = []
        self._last = 0

    def load(self) -> None:
        """Begin again with the turns of the file."""
        self._recent.clear()
        self._last = self._connection.execute("SELECT coalesce(max(turn), 0) FROM turns").fetchone()[0]

    def join(self, columns: Columns, row: int, id: str, *, is_new: bool) -> None:
        """Note that a row belongs to a turn; `is_new`: a turn that is not in memory is not in the file either."""
        turn = self._turn(id, is_new=is_new)
        columns.turn[row] = turn.number
        if turn.low < 0 or row < turn.low:
            turn.low = row
        turn.high = max(turn.high, row)
        columns.flags[row] = turn.flag(columns.flags[row])

    def saved(
        self, columns: Columns, id: str, place: tuple[int, int], *, changed: bool, marked: bool, is_new: bool
    ) -> list[int]:
        """Note the line that has the files of a turn, by file and offset; return the rows whose flags have changed."""
        turn = self._turn(id, is_new=is_new)
        self._saved.append((turn.number, *place))
        if turn.changed or not changed:
            return []
        turn.changed, turn.marked = True, marked
        numbers = columns.turn[turn.low : turn.high + 1] if turn.low >= 0 else ()
        rows = []
        for row, number in enumerate(numbers, turn.low):
            if number == turn.number and (flags := turn.flag(columns.flags[row])) != columns.flags[row]:
                columns.flags[row] = flags
                rows.append(row)
        return rows

    def _turn(self, id: str, *, is_new: bool) -> Turn:
        turn = self._recent.get(id)
        if turn is None:
            sql = "SELECT turn, low, high, changed, marked FROM turns WHERE id = ?"
            found = None if is_new else self._connection.execute(sql, (id,)).fetchone()
            if found is None:
                self._last += 1
                turn = Turn(self._last)
            else:
                number, low, high, changed, marked = found
                turn = Turn(number, low, high, bool(changed), bool(marked))
            self._recent[id] = turn
        self._dirty.add(id)
        return turn

    def write(self) -> None:
        """Write the turns that have changed."""
        many = self._connection.executemany
        dirty = ((name, self._recent[name]) for name in self._dirty)
        rows = ((turn.number, name, turn.low, turn.high, turn.changed, turn.marked) for name, turn in dirty)
        many("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?, ?, ?)", rows)
        many("INSERT INTO saved VALUES (?, ?, ?)", self._saved)
        self._dirty.clear()
        self._saved.clear()

    def forget(self) -> None:
        """Keep none in memory."""
        self.write()
        self._recent.clear()
