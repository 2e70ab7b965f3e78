"""The questions that the page asks of the data: the one seam between the page and the index of calls.

Every method is synchronous, cheap and safe to call from any thread.  All texts in the answers have passed redaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Changed(Protocol):
    """The finding of a refresh."""

    @property
    def calls(self) -> Sequence[int]:
        """The rows that are new or have changed."""

    @property
    def total(self) -> int:
        """The number of all calls."""

    @property
    def version(self) -> int:
        """The version of the data, which grows with each change."""


class Columns(Protocol):
    """Parallel arrays with one entry for each call, ordered by row."""

    def header(self) -> dict[str, Any]:
        """Return the number of calls, and the offset of each array in the bytes."""

    def to_bytes(self) -> bytes:
        """Return the arrays one after the other, little-endian, each padded to eight bytes."""


class Viewing(Protocol):
    """The data of the page; `View` of `look/view.py` implements it."""

    def refresh(self) -> Changed:
        """Read the lines that were written since the last time."""

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the first sentence, the lanes, the tools, and the things that were left out."""

    def columns(self, after: int = 0) -> Columns:
        """Return the arrays of all calls from row `after` on."""

    def command(self, rows: Sequence[int]) -> list[str]:
        """Return one line of text for each row."""

    def search(self, text: str, limit: int) -> list[int]:
        """Return the rows whose command, tool, reason or hook contains all words, the newest first."""

    def row_of(self, id: str) -> int | None:
        """Return the row of the call with this id."""

    def card(self, row: int) -> dict[str, Any]:
        """Return all about one call; raises `IndexError` for a row that does not exist."""

    def hooks(self) -> list[dict[str, Any]]:
        """Return one entry for each hook, with its numbers."""
