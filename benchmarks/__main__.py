"""`python -m benchmarks [NAME…] [--json] [--quick] [--write PAGE]`."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness import FULL, QUICK, Effort, Row, attempt
from benchmarks.page import number, written
from benchmarks.peer_runs import Peers

BENCHMARKS = (
    "dispatch",
    "threads",
    "isolation",
    "tools",
    "loading",
    "imports",
    "growth",
    "sessions",
    "checkpoints",
    "redaction",
    "guards",
    "records",
    "bridge",
    "replay",
    "look",
    "look_page",
)


def main(argv: list[str] | None = None) -> None:
    """Run the benchmarks with the given names, or all of them, and print a table or one JSON object.

    A benchmark that fails is a row with the reason; the others are printed all the same, and the exit code is 1.  Whether
    a target is met changes no exit code: machines differ, and a person has to judge a number.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; all if none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few short rounds: shows that it runs, and little else")
    parser.add_argument("--write", metavar="PAGE", type=Path, help="put the tables of a whole run into this page")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    peers = Peers(quick=options.quick, runs=1 if options.quick else 3)
    rows = measured(options.names or BENCHMARKS, QUICK if options.quick else FULL, peers)
    if options.json:
        print(json.dumps(_as_dict(rows, peers, quick=options.quick)))
    else:
        _print(rows, peers)
    if options.write is not None:
        _write(options.write, rows, peers, whole=not options.quick and not options.names)
    if any(row.broken for group in rows.values() for row in group):
        sys.exit(1)


def measured(names: Iterable[str], effort: Effort, peers: Peers) -> dict[str, list[Row]]:
    """Run the benchmarks, and return their rows by name."""
    rows: dict[str, list[Row]] = {}
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows[name] = attempt(name, lambda name=name: importlib.import_module(f"benchmarks.{name}").run(effort, peers))
    return rows


def _write(page: Path, rows: dict[str, list[Row]], peers: Peers, *, whole: bool) -> None:
    if whole:
        page.write_text(written(page.read_text(), rows, peers.lines))
    else:
        print(f"{page} is left as it is: only a run of all benchmarks without --quick is written", file=sys.stderr)


def _as_dict(rows: dict[str, list[Row]], peers: Peers, *, quick: bool) -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "machine": platform.platform(),
        "quick": quick,
        "rows": [{"benchmark": name, **row.as_dict()} for name, group in rows.items() for row in group],
        "peers": peers.as_dict(),
    }


def _print(rows: dict[str, list[Row]], peers: Peers) -> None:
    table = Table(title=f"agent_hooks on CPython {platform.python_version()}; the lower the better")
    for heading in ("benchmark", "must", "goal", "measured", "verdict", "compared", "peers"):
        table.add_column(heading, justify="right" if heading in ("must", "goal", "measured") else "left")
    for group in rows.values():
        for row in group:
            table.add_row(
                row.name,
                number(row.must),
                number(row.goal),
                "" if row.measured is None else f"{number(row.measured)} {row.unit}",
                row.verdict,
                row.note,
                ", ".join(f"{name} {number(value)}" for name, value in row.peers.items()),
            )
        table.add_section()
    console = Console()
    Console(width=max(console.width, 150), markup=False).print(table)
    for line in peers.lines:
        print(line)


if __name__ == "__main__":
    main()
