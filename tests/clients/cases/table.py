"""The table of the cases, and what the modules of cases share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_hooks.bridges.base.installation import Power
from clients.client import Run
from clients.seat import Seat


@dataclass(frozen=True)
class Case:
    """One row.  `models`: it runs with every model name, because the client's tools matter.

    `core`: it runs in CI in the slow clients too.  `together`: after `Seat.ready` it is one run of commands, which may
    be a part of a longer run; the names of its files belong to no other case.
    """

    name: str
    title: str
    run: Callable[[Seat], bool]
    power: Power | None = None
    models: bool = False
    terminal: bool = False
    core: bool = False
    together: bool = False


# All cases whose module is imported, by name.
CASES: dict[str, Case] = {}


def case(
    title: str, power: Power | None = None, **facts: bool
) -> Callable[[Callable[[Seat], bool]], Callable[[Seat], bool]]:
    """Add a case to the table."""

    def add(function: Callable[[Seat], bool]) -> Callable[[Seat], bool]:
        name = function.__name__
        CASES[name] = Case(name, title, function, power, **facts)
        return function

    return add


def told(run: Run, *words: str) -> None:
    """Check that the model was told each of these words as a result."""
    results = "\n".join(run.results)
    for word in words:
        assert word in results, f"{word!r} is not in the results:\n{results}\n--\n{run.output[-2000:]}"


class NothingHereError(Exception):
    """The client has no such thing as the case is about: no terminal, no such tool with this model."""


def offers_none(seat: Seat, power: Power, what: str) -> bool:
    """Return `False` if the bridge states the lack of a tool as a limit.  Raises `NothingHereError`."""
    if power in seat.limits:
        return False
    raise NothingHereError(f"{seat.client.name} offers {what} with the model {seat.client.model}")


__all__ = ["CASES", "Case", "NothingHereError", "case", "offers_none", "told"]
