"""Run every cell of the matrix, write docs/agents.md, and print the table and the time of each client and of all.

python -m checks.matrix                 all clients; the exit code is 1 if a cell is red
python -m checks.matrix --latest        the newest versions of npm; prints the cells that they change, writes no page
python -m checks.matrix --only codex pi these clients; writes no page

A red cell gets a second run, alone, which counts: the clients have limits of time of their own, and start slowly on a
busy machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clients import page
from clients.cases import CASES
from clients.drivers import DRIVERS
from clients.installing import ROOT

OUT = ROOT / ".bench/matrix"
# The seconds that a whole run may take on two processors.
LIMIT = 40 * 60
# With more red cells than this, something is wrong that no second run mends.
AGAIN = 20
# One worker takes the slow clients, at the end of the list, while the other takes the fast ones.
SHARED = ("--dist", "worksteal")


def run_cells(out: Path, only: Sequence[str], latest: bool, workers: int) -> int:
    """Run the cells, and the red ones again; return pytest's exit code."""
    for name in only or DRIVERS:
        shutil.rmtree(out / name, ignore_errors=True)
    variables = {**os.environ, "MATRIX_OUT": str(out), "MATRIX_ONLY": " ".join(only)}
    variables |= {"MATRIX_LATEST": "1"} if latest else {}
    code = run_pytest(["-n", str(workers), *SHARED], variables)
    red = list(red_lines(page.read_cells(out), only))
    # 1: tests failed, and nothing worse happened.
    if code == 1 and len(red) <= AGAIN:
        print("\n".join(["again, one by one:", *red]), flush=True)
        code = run_pytest(["--last-failed", "--last-failed-no-failures", "none"], variables)
    return code


def run_pytest(options: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run the tests of the cells, and return pytest's exit code."""
    line = [sys.executable, "-m", "pytest", "-q", "-m", "client", "--tb=short", "--no-header", *options]
    return subprocess.run([*line, "tests/clients/test_matrix.py"], cwd=ROOT, env=variables).returncode


def red_lines(cells: page.Cells, only: Sequence[str]) -> Iterable[str]:
    """Yield a line for each red cell, with the reason."""
    for (name, case), each in cells.items():
        for cell in each:
            if cell["kind"] == "red" and (not only or name in only):
                yield f"{name} {cell['version']}, {cell['model']}: {CASES[case].title}: {cell['why']}"


def times(cells: page.Cells) -> Iterable[str]:
    """Yield the time that the cells of each client took, as minutes of one processor."""
    for name in DRIVERS:
        taken = [cell["seconds"] for (client, _), each in cells.items() if client == name for cell in each]
        if taken:
            yield f"{name}: {len(taken)} cells in {clock(sum(taken))} min of one worker"


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def main() -> None:
    """Run the matrix as the command line says."""
    parser = argparse.ArgumentParser(prog="clients.matrix")
    parser.add_argument("--latest", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], choices=[*DRIVERS])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="write the page from the cells of the last run")
    given = parser.parse_args()
    out = OUT / ("latest" if given.latest else "pinned")
    began = time.monotonic()
    code = 0 if given.page else run_cells(out, given.only, given.latest, given.workers)
    took = time.monotonic() - began
    cells = page.read_cells(out)
    ran = {key: each for key, each in cells.items() if not given.only or key[0] in given.only}
    for line in [*page.differences(ran), *red_lines(ran, given.only)]:
        print(line)
    if not given.latest and not given.only:
        page.PAGE.write_text(page.text(cells))
        print(page.text(cells).partition("\n| ")[2])
    print("\n".join(times(ran)))
    print(f"the matrix took {clock(took)} min; {LIMIT // 60} are allowed")
    sys.exit(0 if given.latest else code)


if __name__ == "__main__":
    main()
