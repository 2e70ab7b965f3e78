"""`python -m benchmarks [NAME…] [--json] [--quick]`."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.harness import FULL, QUICK, Row
from benchmarks.peer_runs import Peers

BENCHMARKS = (
    "dispatch",
    "tools",
    "loading",
    "imports",
    "growth",
    "sessions",
    "checkpoints",
    "redaction",
    "guards",
    "bridge",
    "replay",
)


def main(argv: list[str] | None = None) -> None:
    """Run the benchmarks that are named, or all, and print a table or one JSON object.

    Whether a target is met changes no exit code: machines differ, and a number that is off is for a person to judge.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; all if none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few short rounds: shows that it runs, and little else")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    effort = QUICK if options.quick else FULL
    peers = Peers(quick=options.quick, runs=1 if options.quick else 3)
    rows: dict[str, list[Row]] = {}
    for name in options.names or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows[name] = importlib.import_module(f"benchmarks.{name}").run(effort, peers)
    if options.json:
        print(json.dumps(_as_dict(rows, peers, quick=options.quick)))
    else:
        _print(rows, peers)


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
                _number(row.must),
                _number(row.goal),
                f"{_number(row.measured)} {row.unit}",
                row.verdict,
                row.note,
                ", ".join(f"{name} {_number(value)}" for name, value in row.peers.items()),
            )
        table.add_section()
    console = Console()
    Console(width=max(console.width, 150)).print(table)
    for line in peers.lines:
        print(line)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
