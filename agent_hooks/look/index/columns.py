"""The columns: eight numbers of each call, in parallel arrays by row number, 28 bytes a call.

They stay in memory, because the page wants them for all calls at once.  In the index they are kept in chunks, so that a
million calls are read in milliseconds; a refresh writes only the chunks that changed.

The turns of the index: the rows of each, whether it changed files, and the lines that name these files.

A call and the files of its turn may stand in files of different processes, in any order.  So each row has the number of
its turn, and a turn has the first and the last row that belongs to it; other rows may lie between them.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Iterable

from msgspec import Struct

CHUNK = 4096
"""Calls in a chunk."""
PASS, ALLOW, ASK, BLOCK, ABORTED, UNJUDGED, OVERRULED, GONE = 0, 1, 2, 3, 4, 5, 6, 255
"""The verdicts.  `OVERRULED`: the call was blocked, and ran all the same; `GONE`: the files of the row were removed, and
no question finds it any more."""
VERDICTS = ("pass", "allow", "ask", "block", "aborted", "unjudged", "overruled")
REWRITTEN, REDACTED, FAILED, BY_ORDER, CHANGED_FILES, FROM_TRANSCRIPT, ASKED, MAY_CHANGE = 1, 2, 4, 8, 16, 32, 64, 128
"""The flags of a call: a hook changed it, its result held secrets, a hook failed, it was joined with its transcript by
order alone, its turn changed files and it may have done that, no record has it, a person was asked, it may change
files."""
FIELDS = (
    ("time", "d"),
    ("lane", "I"),
    ("tool", "H"),
    ("verdict", "B"),
    ("hookMs", "f"),
    ("waitMs", "f"),
    ("flags", "B"),
)
"""The name and the type of each column that the page gets; a `time` is in milliseconds since 1970."""
_ALIGN = 8


class Columns:
    """The columns of calls: `time[row]`, `lane[row]`, …  `first`: the row number of the first.

    `turn`: the number of the turn in the index, 0 for none; the page has no need of it.
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.time = array("d")
        self.lane = array("I")
        self.tool = array("H")
        self.verdict = array("B")
        self.hook_ms = array("f")
        self.wait_ms = array("f")
        self.flags = array("B")
        self.turn = array("I")

    def __len__(self) -> int:
        return len(self.time)

    @property
    def arrays(self) -> tuple[array[float] | array[int], ...]:
        """The arrays, in the order of `FIELDS`."""
        return self.time, self.lane, self.tool, self.verdict, self.hook_ms, self.wait_ms, self.flags

    def add(self, time: float, lane: int, tool: int, verdict: int) -> None:
        """Add a call."""
        self.time.append(time)
        self.lane.append(lane)
        self.tool.append(tool)
        self.verdict.append(verdict)
        self.hook_ms.append(0.0)
        self.wait_ms.append(0.0)
        self.flags.append(0)
        self.turn.append(0)

    def since(self, row: int) -> Columns:
        """Return a copy of the calls from this row number on."""
        part = Columns(max(row, 0))
        for mine, other in zip(part.arrays, self.arrays, strict=True):
            mine.extend(other[part.first :])  # type: ignore[arg-type]  # of one type
        return part

    def header(self) -> dict[str, object]:
        """Return the description of `to_bytes`: the number of calls, and name, type and offset of each array."""
        offsets, end = [], 0
        for (name, _), each in zip(FIELDS, self.arrays, strict=True):
            offsets.append({"name": name, "type": _NAMES[each.typecode], "offset": end})
            end += _padded(len(each) * each.itemsize)
        return {"first": self.first, "count": len(self), "bytes": end, "columns": offsets}

    def to_bytes(self) -> bytes:
        """Return all arrays one after another, little-endian, each padded to 8 bytes."""
        return b"".join(_bytes(each).ljust(_padded(len(each) * each.itemsize), b"\0") for each in self.arrays)

    # ---- chunks

    def chunk(self, number: int) -> tuple[bytes, ...]:
        """Return the arrays of one chunk as bytes."""
        return tuple(_bytes(each[number * CHUNK : (number + 1) * CHUNK]) for each in (*self.arrays, self.turn))

    def put(self, number: int, parts: Iterable[bytes]) -> None:
        """Put a chunk in its place; the chunks before it are there."""
        begin = number * CHUNK
        for each, part in zip((*self.arrays, self.turn), parts, strict=True):
            fresh = array(each.typecode)
            fresh.frombytes(part)
            if sys.byteorder == "big":
                fresh.byteswap()
            each[begin : begin + CHUNK] = fresh  # type: ignore[assignment]  # of one type


_NAMES = {"d": "float64", "I": "uint32", "H": "uint16", "B": "uint8", "f": "float32"}


def _padded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _bytes(numbers: array[float] | array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


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
