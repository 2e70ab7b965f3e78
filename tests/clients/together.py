"""Several cases in one run of a client, which saves the time of its starts.

Each case runs in a thread of its own, up to its only run of the client, and waits there.  Then the client plays the
commands of all cases one after another, and each case goes on with the results of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from clients.cases import Case
from clients.client import Run
from clients.script import Calls, Step, Text
from clients.seat import Seat


@dataclass
class Part(Run):
    """A run of which only some results count."""

    first: int = 0
    count: int = 0

    @property
    def results(self) -> list[str]:
        """The results of the calls of one case."""
        return super().results[self.first : self.first + self.count]


class _Place(Seat):
    """The seat of one case: its run becomes a part of the common one."""

    def __init__(self, seat: Seat, asked: SimpleQueue[tuple[list[Calls], Future[Part]] | None]) -> None:
        self.client, self.project, self.limits, self.gaps = seat.client, seat.project, seat.limits, seat.gaps
        self._asked = asked

    def ready(self) -> None:
        """Do nothing: the seat of all cases is ready."""

    def run(self, *steps: Step, **options: Any) -> Run:
        assert not options, "a case with options needs a run of its own"
        part = Future[Part]()
        self._asked.put(([step for step in steps if isinstance(step, Calls)], part))
        return part.result()


def play_together(cases: Iterable[Case], seat: Seat) -> dict[str, bool]:
    """Return what `Case.run` returns for each case that works out; a case that fails here needs a run of its own."""
    cases = list(cases)
    asked: SimpleQueue[tuple[list[Calls], Future[Part]] | None] = SimpleQueue()
    seat.ready()
    with ThreadPoolExecutor(len(cases)) as pool:
        outcomes = {}
        for case in cases:
            outcomes[case.name] = pool.submit(case.run, _Place(seat, asked))
            # A case that ends before its run asks for none.
            outcomes[case.name].add_done_callback(lambda _: asked.put(None))
        parts = [part for part in (asked.get() for _ in cases) if part is not None]
        _play(parts, seat)
    works = {}
    for name, outcome in outcomes.items():
        with suppress(Exception):
            works[name] = outcome.result()
    return works


def _play(parts: list[tuple[list[Calls], Future[Part]]], seat: Seat) -> None:
    steps = [step for calls, _ in parts for step in calls]
    try:
        run = seat.run(*steps, Text("done"))
    except BaseException as exc:
        for _, part in parts:
            part.set_exception(AssertionError(f"the common run failed: {exc}"))
        raise
    first = 0
    for calls, part in parts:
        count = sum(len(step.calls) for step in calls)
        part.set_result(Part(run.output, run.code, run.script, run.seconds, first, count))
        first += count
