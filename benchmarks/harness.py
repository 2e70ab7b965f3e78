"""Interleaved rounds, their medians, and the rows of the table.

Standard library only, because the peers' scripts import this module in environments of their own.

One round runs every side once, A B C A B C …, so that a busy machine disturbs all of them alike.  A result is the median
over rounds of a ratio *within* a round.  The garbage collector stays on, because cycles are a cost as well; objects that
were there before are frozen, so that the size of the program does not count.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field
from statistics import median
from time import perf_counter, thread_time

# Runs a number of loops, and returns the seconds per call.
Side = Callable[[int], Awaitable[float]]
PEERS_COMMAND = "python -m checks.peers"


@dataclass(frozen=True)
class Effort:
    """How long to measure: the number of rounds, and the seconds that one side takes in a round."""

    rounds: int = 41
    seconds: float = 0.02
    quick: bool = False


FULL = Effort()
QUICK = Effort(rounds=7, seconds=0.003, quick=True)


@dataclass(frozen=True)
class Row:
    """One line of the table; `measured` and the targets are in `unit`, the lower the better.

    `must`: above it is a defect.  `goal`: the number to reach for.  `problem`: the reason why there is no number;
    `broken`: whether that reason is an error of the benchmark.
    """

    name: str
    measured: float | None
    unit: str = "×"  # noqa: RUF001  # the sign of multiplication is meant
    must: float | None = None
    goal: float | None = None
    peers: dict[str, float] = field(default_factory=dict)
    note: str = ""
    problem: str = ""
    broken: bool = False

    @property
    def missed(self) -> list[str]:
        """The targets that are missed: `must`, `goal` or both."""
        if self.measured is None:
            return []
        return [name for name, target in self._targets if self.measured > target]

    @property
    def verdict(self) -> str:
        """Each target with `met` or `missed`, or the reason why there is no number."""
        if self.measured is None:
            return self.problem
        return ", ".join(f"{name} {'missed' if name in self.missed else 'met'}" for name, _ in self._targets)

    @property
    def _targets(self) -> list[tuple[str, float]]:
        targets = (("must", self.must), ("goal", self.goal))
        return [(name, target) for name, target in targets if target is not None]

    def as_dict(self) -> dict[str, object]:
        """Return the row for machines."""
        return {**asdict(self), "verdict": self.verdict}


class NotHereError(Exception):
    """A benchmark needs a program or a package that this machine does not have; the text names it."""


def without_number(name: str, exc: BaseException) -> Row:
    """Return the row of a benchmark that raised: without a number, but with the reason."""
    if isinstance(exc, NotHereError):
        return Row(name, None, problem=str(exc))
    text = str(exc).strip()
    lines = traceback.extract_tb(exc.__traceback__)
    place = f" ({os.path.basename(lines[-1].filename)}:{lines[-1].lineno})" if lines else ""
    reason = f"{type(exc).__name__}: {text.splitlines()[0]}" if text else type(exc).__name__
    return Row(name, None, problem=f"failed: {reason}{place}", broken=True)


def attempt(name: str, measure: Callable[[], Iterable[Row]]) -> list[Row]:
    """Return the rows of `measure`; if it raises, those that it yielded before and one with the reason."""
    rows: list[Row] = []
    try:
        rows.extend(measure())
    # A benchmark may raise anything.  Its row says so, the exit code is 1, and the other benchmarks go on.
    except Exception as exc:
        rows.append(without_number(name, exc))
    return rows


async def attempt_async(name: str, measure: Awaitable[list[Row]]) -> list[Row]:
    """Return the rows of an awaited part of a benchmark; if it raises, one row with the reason."""
    try:
        return await measure
    # As in `attempt`.
    except Exception as exc:
        return [without_number(name, exc)]


def unrolled(statement: str, times: int = 10, clock: Callable[[], float] = thread_time, **names: object) -> Side:
    """Return a side that runs `statement` `times` times in a loop; the names are local variables, the fastest kind.

    The clock is the processor time of this thread, so that a wait for a core does not count.
    """
    source = "\n".join(
        [
            f"async def side(loops, *, _clock=_clock, {', '.join(f'{name}={name}' for name in names)}):",
            "    begin = _clock()",
            "    for _ in range(loops):",
            *[f"        {statement}"] * times,
            f"    return (_clock() - begin) / (loops * {times})",
        ]
    )
    scope: dict[str, object] = {"_clock": clock, **names}
    exec(source, scope)
    side: Side = scope["side"]  # type: ignore[assignment]
    return side


async def empty(a: object, b: object) -> None:
    """Do nothing; to await this is the floor."""


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
    """Return the number of loops that take `seconds`."""
    # The first call imports, plans and compiles; it does not count.
    await side(1)
    loops = 1
    while True:
        begin = perf_counter()
        await side(loops)
        took = perf_counter() - begin
        if took >= seconds / 4:
            return max(1, round(loops * seconds / took))
        loops *= 4
