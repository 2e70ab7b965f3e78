"""`python -m benchmarks [NAME…] [--json] [--quick] [--write]`."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from benchmarks import page
from benchmarks.harness import FULL, QUICK, Effort, Row, attempt
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

    A benchmark that fails is a row with the reason. The others are printed all the same, and the exit code is 1. A missed
    target changes no exit code, because machines differ.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; all if none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few short rounds: shows that it runs, and little else")
    parser.add_argument(
        "--write", action="store_true", help="write a whole run into benchmarks/results.json and docs/performance.md"
    )
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    peers = Peers(quick=options.quick, runs=1 if options.quick else 3)
    rows = measured(options.names or BENCHMARKS, QUICK if options.quick else FULL, peers)
    run = page.run_of(rows, peers.lines)
    if options.json:
        print(json.dumps(run))
    else:
        _print(rows, peers)
    if options.write and not options.quick and not options.names:
        page.write(run)
    elif options.write:
        print("nothing is written: this takes a run of all benchmarks without --quick", file=sys.stderr)
    if any(row.broken for group in rows.values() for row in group):
        sys.exit(1)


def measured(names: Iterable[str], effort: Effort, peers: Peers) -> dict[str, list[Row]]:
    """Run the benchmarks, and return their rows by name."""
    rows: dict[str, list[Row]] = {}
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows[name] = attempt(name, lambda name=name: importlib.import_module(f"benchmarks.{name}").run(effort, peers))
    return rows


def _print(rows: dict[str, list[Row]], peers: Peers) -> None:
    table = Table(title=f"agent_hooks on CPython {platform.python_version()}; the lower the better")
    for heading in ("benchmark", "must", "goal", "measured", "verdict", "compared", "peers"):
        table.add_column(heading, justify="right" if heading in ("must", "goal", "measured") else "left")
    for group in rows.values():
        for row in group:
            table.add_row(
                row.name,
                page.number(row.must),
                page.number(row.goal),
                "" if row.measured is None else f"{page.number(row.measured)} {row.unit}",
                row.verdict,
                row.note,
                ", ".join(f"{name} {page.number(value)}" for name, value in row.peers.items()),
            )
        table.add_section()
    console = Console()
    Console(width=max(console.width, 150), markup=False).print(table)
    for line in peers.lines:
        print(line)


if __name__ == "__main__":
    main()
