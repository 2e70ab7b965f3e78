"""Writes docs/reliability.md: the table of faults, with the outcomes of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chaos.cells import BACKENDS, KINDS, MODES, PLACES, Cell, matrix
from chaos.faults import FAMILIES, FAULTS
from chaos.faults.fault import Fault

COLUMNS = [(mode, place) for mode in MODES for place in PLACES]
_TITLES = {"wrapped": "wrapped tool", "host": "host", "server": "server"}
_HEAD = """\
# Reliability

{summary}

`make chaos` breaks a hook in {faults} ways and writes this page. Each fault runs in four kinds of handlers (a gate, a
rewriter, a handler of results, an observer), inside of the agent and in a process of its own, on asyncio and trio, and
in three places: a wrapped tool of another program, the host (`agent-hooks run`), and the resident server behind a
bridge, which runs on asyncio. That makes {cells:,} cells. Each cell makes five calls: one that meets the fault, one that
another hook forbids, one that the broken hook forbids, and two without harm. In each cell, these promises hold:

1. No forbidden call runs, neither the one that meets the fault nor a later one.
2. No result is lost: the result of each tool that ran reaches the agent.
3. The agent goes on: each call gets a result, and the calls without harm run.
4. The agent ends in order, without a traceback and without a process that stays.

No process survives some of these faults inside of it. The last column names them, with the reason. There, the first
promise alone holds for a hook inside of the agent. A hook in a process of its own keeps all four.

- **holds**: the failure stays with its call. The call is blocked, or goes on without the broken handler. Later calls are
  judged.
- **closed**: the failure stays with its call, and the broken hook blocks the later calls that it judges.
- **interrupted**: a rewriter has no deadline, so its call waits until the person interrupts it. The call does not run.
- **restarted**: the server ends. Its client denies the call, and starts a new server for the next event. A process of its
  own judges an event that decides nothing again.
- **denied**: the server does not answer any more. Its client denies every call until `agent-hooks serve --stop`.
- **ends**: the agent itself ends. No later call runs. The session file has the calls and results until then.
- **hangs**: the agent waits until it is killed. No call runs meanwhile.

Where the kinds of handlers differ, the cell names those that do. The command that repeats one cell is
`make chaos ARGS="--only 'FAULT/gate/inline/asyncio/host'"`.
"""


def page(results: Mapping[str, Mapping[str, Any]], version: Callable[[str], str]) -> str:
    """Return the page; `results`: those of a run, by the names of the cells; `version`: that of a fault's cells now."""
    parts = [_HEAD.format(summary=_summary(results, version), faults=len(FAULTS), cells=len(matrix()))]
    for family, faults in FAMILIES.items():
        heads = "".join(f" {mode}: {_TITLES[place]} |" for mode, place in COLUMNS)
        parts.append(f"\n## {family}\n\n| fault |{heads} where no process survives |\n|{'---|' * (len(COLUMNS) + 2)}\n")
        parts += [_row(fault, results) for fault in faults]
    return "".join(parts)


def _summary(results: Mapping[str, Mapping[str, Any]], version: Callable[[str], str]) -> str:
    """Return the first sentence of the page: how many cells ran, how many of them are red, and on which days."""
    days = sorted({result["day"] for result in results.values()})
    span = f", {' to '.join(dict.fromkeys([days[0], days[-1]]))}" if days else ""
    red = sum(bool(result["wrong"]) for result in results.values())
    older = sum(result["version"] != version(cell.partition("/")[0]) for cell, result in results.items())
    others = f" {older:,} ran on an older version of the code." if older else ""
    return f"**{len(results):,} of {len(matrix()):,} cells have run{span}; {red:,} are red.**{others}"


def _row(fault: Fault, results: Mapping[str, Mapping[str, Any]]) -> str:
    cells = "".join(f" {_words(fault, mode, place, results)} |" for mode, place in COLUMNS)
    return f"| {fault.name} |{cells} {note(fault)} |\n"


def note(fault: Fault) -> str:
    """Return the last column: the reason, and the backend, kind or place that it is limited to."""
    if not fault.ends:
        return ""
    limits = {part for pattern in fault.where for part in pattern.split("/")} - {"*", "inline", "wrapped"}
    return f"{fault.ends} ({', '.join(sorted(limits))})" if limits else fault.ends


def _words(fault: Fault, mode: str, place: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the outcomes of the cells of one fault, mode and place."""
    outcomes: dict[str, list[tuple[str, str]]] = {}
    for backend in BACKENDS if place != "server" else BACKENDS[:1]:
        for kind in KINDS:
            if result := results.get(Cell(fault.name, kind, mode, backend, place).name):
                outcomes.setdefault("RED" if result["wrong"] else result["outcome"], []).append((backend, kind))
    if len(outcomes) < 2:
        return next(iter(outcomes), "not run")
    usual = max(outcomes, key=lambda word: len(outcomes[word]))
    others = [f"{_names(where, place)} {word}" for word, where in outcomes.items() if word != usual]
    return "; ".join([usual, *others])


def _names(where: Iterable[tuple[str, str]], place: str) -> str:
    """Return the kinds, with the backend if it is only one of the two: `gate, rewriter on trio`."""
    by_backend: dict[str, list[str]] = {}
    for backend, kind in where:
        by_backend.setdefault(backend, []).append(kind)
    if place == "server" or len(set(map(tuple, by_backend.values()))) == 1 < len(by_backend):
        return ", ".join(next(iter(by_backend.values())))
    return " and ".join(
        f"{backend}" if len(kinds) == len(KINDS) else f"{', '.join(kinds)} on {backend}"
        for backend, kinds in by_backend.items()
    )
