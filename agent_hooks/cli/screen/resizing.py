"""A terminal that becomes narrower while the prompt line is shown."""

from __future__ import annotations

import os

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.layout.screen import Screen


class ResizedApplication(Application[None]):
    """An application that erases all rows of its last drawing after a change of the size.

    Most terminals break the rows anew when they become narrower, so the drawing has more rows than before.  Of
    prompt_toolkit's own, only as many are erased as were drawn, and the others would stay.
    """

    _drawn_in: Size | None = None

    def _redraw(self, render_as_done: bool = False) -> None:
        # The terminal may have changed before the signal comes, while a text is streamed.
        former, self._drawn_in = self._drawn_in, self.output.get_size()
        if former not in (None, self._drawn_in) and not render_as_done:
            self._on_resize()
        else:
            super()._redraw(render_as_done)

    def _on_resize(self) -> None:
        # Another program has the screen.
        if self._running_in_terminal:
            return
        screen = self.renderer.last_rendered_screen
        # xterm cuts its rows.
        if screen is not None and "XTERM_VERSION" not in os.environ:
            cursor = screen.get_cursor_position(self.layout.current_window)
            self.output.cursor_up(added_rows(screen, cursor.y, cursor.x, self.output.get_size()))
        super()._on_resize()


def added_rows(screen: Screen, row: int, column: int, size: Size) -> int:
    """Return how many rows a terminal of this size adds above the cursor, which is at `row` and `column`."""
    return sum((_width(screen, above) - 1) // size.columns for above in range(row)) + column // size.columns


def _width(screen: Screen, row: int) -> int:
    """Return the columns of a row up to its last letter, 1 for an empty row."""
    cells = screen.data_buffer[row]
    return max((column + 1 for column, cell in cells.items() if cell.char.strip()), default=1)
