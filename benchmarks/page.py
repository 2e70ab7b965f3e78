"""Write the tables of a whole run into `docs/performance.md`, between two marks.

The prose around the marks is written by hand.
"""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime

from benchmarks.harness import Row

BEGIN, END = "<!-- begin: written by make bench -->", "<!-- end: written by make bench -->"
HEAD = "| benchmark | must | goal | measured | verdict | compared | peers |\n|---|---|---|---|---|---|---|"
SYSTEMS = {"Darwin": "macOS"}


def written(page: str, rows: dict[str, list[Row]], lines: list[str]) -> str:
    """Return a page with the tables of a run in the place of the last ones; `lines` are about the peers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no section to write: it lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{section(rows, lines)}\n{END}{after}"


def section(rows: dict[str, list[Row]], lines: list[str]) -> str:
    """Return the machine, the missed targets, the tables and the peers, as Markdown."""
    every = [row for group in rows.values() for row in group]
    parts = [f"{machine()}, on {datetime.now(UTC):%Y-%m-%d}.\n"]
    for target in ("must", "goal"):
        parts += [f"### Missed: {target}\n", *_missed(every, target), ""]
    if absent := [row for row in every if row.measured is None]:
        parts += ["### Not measured\n", *(f"- {_cell(row.name)}: {_cell(row.problem)}" for row in absent), ""]
    for name, group in rows.items():
        parts += [f"### {name}\n", HEAD, *map(_line, group), ""]
    parts += ["### Versions of the peers\n", *(f"- {_cell(line)}" for line in lines), ""]
    return "\n".join(parts)


def machine() -> str:
    """Describe the machine in general words, without its name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    system = SYSTEMS.get(platform.system(), platform.system())
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"Measured with {python} on {system} ({platform.machine()}) with {cores} cores, which other programs used too"
    )


def number(value: float | None) -> str:
    """Return a number with three digits; nothing for `None`."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _missed(rows: list[Row], target: str) -> list[str]:
    missed = [row for row in rows if target in row.missed]
    return [
        f"- {_cell(row.name)}: {number(row.measured)} {row.unit}, the {target} is {number(getattr(row, target))}"
        for row in missed
    ] or ["- none"]


def _line(row: Row) -> str:
    measured = "" if row.measured is None else f"{number(row.measured)} {row.unit}"
    peers = ", ".join(f"{name} {number(value)}" for name, value in row.peers.items())
    cells = (row.name, number(row.must), number(row.goal), measured, row.verdict, row.note, peers)
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Return a text that stays in its cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
