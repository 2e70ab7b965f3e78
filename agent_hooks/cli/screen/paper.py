"""The console for tables and colours: texts on it are harmless, and a reader that goes is no failure."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from agent_hooks.cli.streams import silence_gone
from agent_hooks.ui.charset import shown_in
from agent_hooks.ui.harmless import harmless


class Paper(Console):
    """A console whose texts cannot control the terminal; the console's own colours and movements stay."""

    _nowhere: IO[str] | None = None

    @property
    def file(self) -> IO[str]:
        """Return the stream to print on, or the null device if a hook has closed the stream or broken it."""
        try:
            file: IO[str] = super().file
            if not file.closed:
                return file
        # The hook's object may raise anything at any attribute.  A text that cannot be shown is lost.
        except Exception:  # noqa: S110  # see above
            pass
        if self._nowhere is None:
            self._nowhere = open(os.devnull, "w")  # noqa: SIM115  # open as long as the console
        return self._nowhere

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of a renderable, with harmless texts, in the characters of the terminal."""
        shown = shown_in if self.is_terminal else str
        for each in super().render(renderable, options):
            yield each if each.control else Segment(shown(harmless(each.text)), each.style)

    def on_broken_pipe(self) -> None:
        """Drop the output; rich would end the process."""
        silence_gone()
