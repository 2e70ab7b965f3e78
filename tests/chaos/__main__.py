"""Run the matrix: `python -m checks.chaos`; a part: `… --only 'segfaults/gate/inline/asyncio/host'`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from chaos.cells import Cell, chosen, matrix, tenth
from chaos.page import write
from chaos.version import version
from chaos.workers import run_all

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / ".bench" / "chaos.jsonl"
# Cells between two lines about the time that is left.
OFTEN = 200


def main() -> int:
    """Run the wanted cells, print those that are red, and write results and page when the whole matrix has run."""
    args = _arguments()
    cells = _wanted(args)
    results = _read(cells, args.file) if args.resume else {}
    again = {name for name, result in results.items() if result["wrong"] or result["version"] != version(_fault(name))}
    if results:
        print(
            f"{len(results)} of {len(cells)} cells have run before, {len(again)} red or on other code: they run again"
        )
    args.file.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    # The cells that have no result come first.
    todo = [cell for cell in cells if cell.name not in results] + [cell for cell in cells if cell.name in again]
    with args.file.open("w") as file:
        # Without the last line, which may have been cut.
        file.writelines(f"{json.dumps(result)}\n" for result in results.values())
        file.flush()
        for number, result in enumerate(run_all(todo, args.jobs), 1):
            results[result["cell"]] = _note(result, file, verbose=len(cells) <= OFTEN)
            if number % OFTEN == 0:
                _print_time(number, len(todo), time.monotonic() - began)
        # Cells that ran beside others may be red for the load: each of them gets a second run, alone.
        for result in run_all([cell for cell in todo if results[cell.name]["wrong"]], 1):
            print("alone:")
            results[result["cell"]] = _note(result, file, verbose=True)
    if len(results) == len(matrix()):
        write(results, version)
    red = [result for result in results.values() if result["wrong"]]
    took = time.monotonic() - began
    print(f"{len(cells)} cells of {len({cell.fault for cell in cells})} faults in {took:.0f} s: {len(red)} red")
    return 1 if red else 0


def _note(result: dict[str, Any], file: TextIO, *, verbose: bool) -> dict[str, Any]:
    """Print a result, write it down with its version and day, and return it."""
    result |= {"version": version(_fault(result["cell"])), "day": f"{datetime.now(UTC):%Y-%m-%d}"}
    file.write(f"{json.dumps(result)}\n")
    file.flush()
    _print(result, verbose=verbose)
    return result


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m checks.chaos")
    parser.add_argument("--only", action="append", default=[], metavar="CELL", help="a cell, a fault or a pattern")
    parser.add_argument("--tenth", metavar="SEED", help="a tenth of the cells, another one for another seed")
    parser.add_argument("--resume", action="store_true", help="go on where the last run stopped")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)) + 1)
    parser.add_argument("--file", type=Path, default=RESULTS, help="the results, a JSON object a line")
    return parser.parse_args()


def _wanted(args: argparse.Namespace) -> list[Cell]:
    cells = matrix()
    if args.only:
        cells = chosen(cells, tuple(args.only))
    return tenth(cells, args.tenth) if args.tenth else cells


def _read(cells: list[Cell], file: Path) -> dict[str, dict[str, Any]]:
    """Return the results of an earlier run; a last line that was cut does not count."""
    names = {cell.name for cell in cells}
    results: dict[str, dict[str, Any]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            result = json.loads(line)
        except ValueError:
            continue
        if result["cell"] in names:
            results[result["cell"]] = result
    return results


def _fault(cell: str) -> str:
    return cell.partition("/")[0]


def _print(result: dict[str, Any], *, verbose: bool) -> None:
    if result["wrong"]:
        print(f"RED {result['cell']}: {result['outcome']} after {result['seconds']} s")
        for line in result["wrong"]:
            print(f"    {line}")
        print(f"    again: python -m checks.chaos --only '{result['cell']}'", flush=True)
    elif verbose:
        print(f"{result['cell']}: {result['outcome']} after {result['seconds']} s", flush=True)


def _print_time(number: int, cells: int, took: float) -> None:
    left = took / number * (cells - number)
    print(f"-- {number} of {cells} cells in {took:.0f} s, about {left:.0f} s are left", flush=True)


if __name__ == "__main__":
    sys.exit(main())
