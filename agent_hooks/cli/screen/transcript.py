"""The conversation as it was printed, with whole texts in the place of folded ones, for a pager."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

# The pieces that are kept: a day's work has some thousands.
_MOST = 10_000


class Transcript:
    """Keeps every piece that is printed, in order; the oldest ones go when there are too many."""

    def __init__(self) -> None:
        self._pieces: deque[Callable[[], str]] = deque(maxlen=_MOST)

    def add(self, whole: Callable[[], str]) -> None:
        """Take the next piece, as a function that draws all of it; from any thread."""
        self._pieces.append(whole)

    def text(self) -> str:
        """Return all of it, with the escapes of its colours."""
        return "".join(draw() for draw in list(self._pieces))
