"""The part of a text that fits on the screen, and whether all of the text has been there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from agent_hooks.errors import count
from agent_hooks.ui.fitting import Line, cut

MANY_BLANKS = 32
"""The least blanks in a row that are shown as a count."""
MANY_EMPTY = 4
"""The least empty lines in a row that are shown as a count."""
# Letters that look like a blank are counted too.
_BLANK = r"\s\u115f\u1160\u2800\u3164\uffa0"
Rows = Callable[[int], tuple[list[Line], int]]
"""Wraps a text to some columns: its rows, and the index of the row in which the call begins."""


def condensed(lines: Iterable[str], signs: int = 0) -> Iterator[str]:
    """Yield lines with a count instead of many blanks or empty lines, because they would move the rest out of sight.

    `signs`: the characters before the text of each line, one in a diff.
    """

    def kind(line: str) -> tuple[str, bool]:
        return line[:signs], re.fullmatch(f"[{_BLANK}]*", line[signs:]) is not None

    for (sign, empty), group in groupby(lines, kind):
        run = [*group]
        if empty and len(run) >= MANY_EMPTY:
            yield f"{sign}…[{len(run)} empty lines]…"
        else:
            yield from (re.sub(f"[{_BLANK}]{{{MANY_BLANKS},}}", _counted, line) for line in run)


def _counted(blanks: re.Match[str]) -> str:
    return f" …[{len(blanks[0])} blanks]… "


class Reading:
    """A text that is read page by page.

    1. A text that fits is shown whole.
    2. Otherwise its beginning, the beginning of the call and the last row are shown, with the number of rows between.
    3. A page begins where the rows that were drawn before it end, so none is passed over.
    4. `complete` is set when the last page is drawn.
    5. Another size begins at the first page: other programs can claim a size that the terminal does not have.
    """

    def __init__(self, wrapped: Rows) -> None:
        self.complete = False
        self._wrapped = wrapped
        self._columns = 0
        self._rows: list[Line] = []
        # The rows in which the call, this page, the next page and the last page begin.
        self._call = self._first = self._next = self._last = 0
        self._height = 1

    def rows(self, columns: int) -> list[Line]:
        """Return all rows."""
        if columns != self._columns:
            self._columns = columns
            self._rows, self._call = self._wrapped(columns)
            self._restart()
        return self._rows

    def _restart(self) -> None:
        self.complete, self._first = False, 0

    def part(self, columns: int, height: int) -> list[Line]:
        """Return the rows that are drawn now, at most `height`."""
        rows = self.rows(columns)
        if height != self._height:
            self._restart()
        self._height = height
        self._last = max(len(rows) - height, 0)
        self._first = first = min(self._first, self._last)
        if first == self._last:
            self._next, self.complete = len(rows), True
            return rows[first:]
        room = max(height - 2, 1)
        beginning: list[Line] = []
        if not first and 2 < room <= self._call < len(rows) - 2:
            # The call begins below this page.
            room -= 2
            beginning = [self._more(self._call - room), rows[self._call]]
        self._next = first + room
        left = len(rows) - 1 - (self._call + 1 if beginning else self._next)
        return [*rows[first : self._next], *beginning, self._more(left, "PgDn shows them"), rows[-1]][:height]

    def _more(self, number: int, how: str = "") -> Line:
        return "class:hint", cut(f"… {count(number, 'more line')}{': ' * bool(how)}{how} …", self._columns)

    @property
    def is_cut(self) -> bool:
        """Whether some of the text does not fit."""
        return self._last > 0

    def page(self, way: int) -> bool:
        """Turn to the next page, or with -1 to the one before, and return whether there is such a page."""
        before = self._first
        self._first = min(self._next, self._last) if way > 0 else max(before - max(self._height - 2, 1), 0)
        return self._first != before
