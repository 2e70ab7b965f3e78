"""docs/agents.md: the matrix as a page, made from the cells that a run has left, and read again by a test.

A cell of the page is one word: `yes`; a number, which is that of a limit below the table; a dash, where the client has no
such thing; or `RED`.  A case that runs with several models is `yes` only if it is with each of them.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_hooks.bridges import BRIDGES, open_bridge
from clients.cases import CASES
from clients.drivers import DRIVERS
from clients.installing import PACKAGES, ROOT

PAGE = ROOT / "docs/agents.md"
# The word of a cell where the client has no such thing.
NONE = "\u2013"
# The client without a program to run here: its column comes from its bridge alone.
DOCUMENTED = "cursor"
HEAD = """\
# In eight agents

`python -m checks.matrix` writes this page. The columns of eight agents come from real runs: the programs of npm, run
without a person and at a terminal, with a model on this machine that plays a script. All of them run the same hook file,
[everywhere.py](../examples/hooks/everywhere.py), installed by `agent-hooks install`. {cursor}

Gemini CLI has served enterprises and API keys only since 18 June 2026. Antigravity CLI (`agy`), its successor for
individual users, and VS Code have hooks of their own. No run has tried these two.

- *yes*: hooks can do it, as the row says.
- *a number*: the agent does not let hooks do it. The list below the table gives the reason. A denial holds all the same:
  a call that hooks block, or would ask about or rewrite, does not run.
- *yes, but* a number: the list has the exception.
- *a dash*: the agent has no such thing: no terminal of its own, or no such tool.

Which tools an agent offers can depend on the model's name, so some rows are run with two names: {models}.

"""
CURSOR = "Cursor's column comes from its documents: *doc* stands for a promise that no run has shown."
Cells = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]


def read_cells(directory: Path) -> Cells:
    """Return the cells of a run, by client and case; one for each model."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for path in sorted(directory.glob("*/*.json")):
        cell = json.loads(path.read_text())
        if cell["case"] in CASES:
            found.setdefault((cell["client"], cell["case"]), []).append(cell)
    return found


def columns() -> list[str]:
    """Return the names of the columns: the clients that run here, and the documented one."""
    return [*(name for name in DRIVERS if name in BRIDGES), *([DOCUMENTED] if DOCUMENTED in BRIDGES else [])]


def limits() -> list[tuple[str, str, str]]:
    """Return each limit of each client: the client, the power, the reason."""
    return [
        (name, power, reason)
        for name in columns()
        for power, reason in sorted(open_bridge(name).limits.items())
        if any(case.power == power for case in CASES.values())
    ]


def gaps() -> list[tuple[str, str, str]]:
    """Return each exception of a power that hooks have: the client, the power, the exception."""
    return [
        (name, power, gap)
        for name in columns()
        for power, gap in sorted(open_bridge(name).gaps.items())
        if any(case.power == power for case in CASES.values())
    ]


def notes() -> list[tuple[str, str]]:
    """Return the notes below the table: each reason of a client once, and each exception."""
    return list(dict.fromkeys((name, text) for name, _, text in [*limits(), *gaps()]))


def word(name: str, case: str, cells: Cells) -> str:
    """Return the word of a cell."""
    power = CASES[case].power
    limit = open_bridge(name).limits.get(power) if power else None
    gap = open_bridge(name).gaps.get(power) if power else None
    reason = limit or gap
    note = str(notes().index((name, reason)) + 1) if reason else ""
    yes = f"yes, but {note}" if gap else "yes"
    if name == DOCUMENTED:
        return (note if limit else f"doc, but {note}" if gap else "doc") if power else NONE
    found = {cell["kind"] for cell in cells.get((name, case), ())}
    if not found:
        return "not run"
    if "red" in found:
        return "RED"
    if "limit" in found:
        return note
    return yes if "yes" in found else NONE


def table(cells: Cells) -> list[list[str]]:
    """Return the rows of the table: the case's title, and a word for each client."""
    return [[case.title, *(word(name, case.name, cells) for name in columns())] for case in CASES.values()]


def seconds(cells: Cells) -> list[str]:
    """Return the row of seconds: those of a usual cell of each client."""
    found = {
        name: [cell["seconds"] for (client, _), each in cells.items() if client == name for cell in each]
        for name in columns()
    }
    return ["seconds of a usual cell", *(f"{statistics.median(each):.0f}" if each else NONE for each in found.values())]


def versions() -> list[str]:
    """Return the row of versions, those of the lock files."""
    return ["version", *(PACKAGES[name].version() if name in PACKAGES else NONE for name in columns())]


def text(cells: Cells) -> str:
    """Return the page."""
    models = "; ".join(
        f"{name} {' and '.join(driver.models)}" for name, driver in DRIVERS.items() if len(driver.models) > 1
    )
    rows = [["hooks", *columns()], ["---"] * (len(columns()) + 1), versions(), *table(cells), seconds(cells)]
    below = [f"{number}. *{name}*: {each}." for number, (name, each) in enumerate(notes(), 1)]
    head = HEAD.format(cursor=CURSOR if DOCUMENTED in columns() else "", models=models)
    return head + "\n".join(_line(row) for row in rows) + "\n\n" + "\n".join(below) + "\n"


def _line(row: Iterable[str]) -> str:
    return f"| {' | '.join(row)} |"


def read_page() -> dict[str, dict[str, str]]:
    """Return the words of the present page, by row and column."""
    rows = [
        line.removeprefix("| ").removesuffix(" |").split(" | ")
        for line in PAGE.read_text().splitlines()
        if line.startswith("|")
    ]
    if not rows:
        return {}
    names = rows[0][1:]
    return {row[0]: dict(zip(names, row[1:], strict=False)) for row in rows[2:]}


def differences(cells: Cells) -> list[str]:
    """Return a line for each cell of a run that the page has otherwise, for the clients of the run."""
    page, lines = read_page(), []
    ran = {client for client, _ in cells}
    for title, *words in table(cells):
        for name, new in zip(columns(), words, strict=True):
            old = page.get(title, {}).get(name, "nothing")
            # The numbers of the notes may move.
            if name in ran and re.sub(r"\d+", "a limit", new) != re.sub(r"\d+", "a limit", old):
                lines.append(f"{name}: {title}: {old} before, {new} now")
    return lines


__all__ = ["PAGE", "columns", "differences", "notes", "read_cells", "read_page", "text", "versions"]
