"""Interleaved rounds and their medians.  Standard library only, because peers import it in environments of their own.

One round runs every side once, A B C A B C …, so that a busy machine disturbs all of them alike.  A result is the median
over rounds of a ratio *within* a round.  The garbage collector stays on, for cycles are a cost as well; what was there
before is frozen, so that the size of the program does not count.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from time import perf_counter

Side = Callable[[int], Awaitable[float]]  # runs a number of loops, and returns the seconds per call


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, and seconds that one side takes in a round."""

    rounds: int = 41
    seconds: float = 0.02
    quick: bool = False


FULL = Effort()
QUICK = Effort(rounds=7, seconds=0.003, quick=True)


@dataclass(frozen=True)
class Row:
    """One line of the table; `measured` and the targets in `unit`, the lower the better."""

    name: str
    measured: float
    unit: str = "×"  # noqa: RUF001  # it is meant
    must: float | None = None
    goal: float | None = None
    peers: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def verdict(self) -> str:
        """Say which target is met."""
        if self.goal is not None and self.measured <= self.goal:
            return "goal met"
        if self.must is not None:
            return "must met" if self.measured <= self.must else "not met"
        return "" if self.goal is None else "not met"

    def as_dict(self) -> dict[str, object]:
        """Return the row for machines."""
        return {**asdict(self), "verdict": self.verdict}


def unrolled(statement: str, times: int = 10, **names: object) -> Side:
    """Return a side that runs `statement` `times` times per loop; the names are locals, as in a function that is fast."""
    source = "\n".join(
        [
            f"async def side(loops, *, _clock=_clock, {', '.join(f'{name}={name}' for name in names)}):",
            "    begin = _clock()",
            "    for _ in range(loops):",
            *[f"        {statement}"] * times,
            f"    return (_clock() - begin) / (loops * {times})",
        ]
    )
    scope: dict[str, object] = {"_clock": perf_counter, **names}
    exec(source, scope)
    side: Side = scope["side"]  # type: ignore[assignment]
    return side


async def empty(a: object, b: object) -> None:
    """Do nothing; awaiting this is the floor."""


def bare_await() -> Side:
    """Return the floor that every peer is measured against as well."""
    return unrolled("await f(a, b)", f=empty, a=1, b=2)


class Rounds:
    """The seconds per call of each side, round by round."""

    def __init__(self, times: dict[str, list[float]]) -> None:
        self.times = times

    def seconds(self, side: str) -> float:
        """Return the median of one side."""
        return median(self.times[side])

    def ratio(self, side: str, base: str, scale: float = 1) -> float:
        """Return the median of `side / (base * scale)`."""
        pairs = zip(self.times[side], self.times[base], strict=True)
        return median(one / (other * scale) for one, other in pairs)


async def interleave(sides: dict[str, Side], effort: Effort) -> Rounds:
    """Run the sides in turn."""
    loops = {name: await _loops(side, effort.seconds) for name, side in sides.items()}
    times: dict[str, list[float]] = {name: [] for name in sides}
    gc.collect()
    gc.freeze()
    try:
        for _ in range(effort.rounds):
            for name, side in sides.items():
                times[name].append(await side(loops[name]))
            gc.collect()
    finally:
        gc.unfreeze()
    return Rounds(times)


async def _loops(side: Side, seconds: float) -> int:
    """Return how many loops take that long."""
    await side(1)  # the first call imports, plans and compiles: a long one, and not to be counted
    loops = 1
    while True:
        begin = perf_counter()
        await side(loops)
        took = perf_counter() - begin
        if took >= seconds / 4:
            return max(1, round(loops * seconds / took))
        loops *= 4
