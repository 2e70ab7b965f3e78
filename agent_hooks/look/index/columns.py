"""The columns: eight numbers of each call, in parallel arrays by row number, 28 bytes a call.

They stay in memory, because the page wants them for all calls at once.  In the index they are kept in chunks, so that a
million calls are read in milliseconds; a refresh writes only the chunks that changed.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable

CHUNK = 4096
"""Calls in a chunk."""
PASS, ALLOW, ASK, BLOCK, ABORTED, UNJUDGED, GONE = 0, 1, 2, 3, 4, 5, 255
"""The verdicts; `GONE` is that of a row whose files were removed, which no question finds any more."""
VERDICTS = ("pass", "allow", "ask", "block", "aborted", "unjudged")
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
