"""The cells of the matrix: a fault, in a kind of handler, in a mode, on a backend, at a place."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from typing import NamedTuple

from chaos.faults import FAULTS
from chaos.faults.fault import Fault

KINDS = ("gate", "rewriter", "result", "observer")
MODES = ("inline", "process")
BACKENDS = ("asyncio", "trio")
PLACES = ("wrapped", "host", "server")


class Cell(NamedTuple):
    """One run of one fault."""

    fault: str
    kind: str
    mode: str
    backend: str
    place: str

    @property
    def name(self) -> str:
        """The name by which `--only` takes it."""
        return "/".join(self)

    @property
    def is_named(self) -> bool:
        """Whether the table says that no process survives here."""
        return self.details.ends_in("/".join(self[1:]))

    @property
    def judges(self) -> bool:
        """Whether the broken handler itself decides about the call in trouble."""
        return self.kind in ("gate", "rewriter")

    @property
    def is_interrupted(self) -> bool:
        """Whether the call may wait for an interrupt: a rewriter has no deadline."""
        return self.details.waits and self.kind == "rewriter"

    @property
    def details(self) -> Fault:
        """The fault's row."""
        return FAULTS[self.fault]


def matrix() -> list[Cell]:
    """Return every cell, mixed.  The resident server runs on asyncio only."""
    cells = [
        Cell(fault, kind, mode, backend, place)
        for fault in FAULTS
        for place in PLACES
        for mode in MODES
        for backend in (BACKENDS if place != "server" else BACKENDS[:1])
        for kind in KINDS
    ]
    # In another order, so that cells which wait and cells which compute run side by side, and the estimate is right.
    return sorted(cells, key=lambda cell: _digest(cell.name))


def chosen(cells: list[Cell], patterns: tuple[str, ...]) -> list[Cell]:
    """Return the cells whose names match one of the patterns; a fault alone stands for all of its cells."""
    wanted = [pattern if pattern.count("/") == 4 else f"{pattern}/*" for pattern in patterns]
    return [cell for cell in cells if any(fnmatchcase(cell.name, pattern) for pattern in wanted)]


def tenth(cells: list[Cell], seed: str) -> list[Cell]:
    """Return about one cell in ten, other ones for another seed."""
    return [cell for cell in cells if _digest(f"{seed}/{cell.name}")[0] * 10 < 256]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
