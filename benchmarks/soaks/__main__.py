"""`python -m benchmarks.soaks [--part N] [--seed N] [--json]`: print the figures of the long runs as a table.

The exit code is 1 if a figure is not flat.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from time import perf_counter

from benchmarks.peer_runs import ROOT
from benchmarks.soaks.flatness import Run, table

CALLS, SESSIONS = 100_000, 5_000


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soaks", description=__doc__)
    parser.add_argument("--part", type=int, default=1, help="run only a part of everything: 10 for a tenth")
    parser.add_argument("--seed", type=int, help="the seed that chooses the faults; a new one each time by default")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}; to repeat: python -m benchmarks.soaks --part {options.part} --seed {seed}", file=sys.stderr)
    began = perf_counter()
    runs = [_calls(backend, CALLS // 2 // options.part, seed) for backend in ("asyncio", "trio")]
    # Imported here, so that the error of a system without /proc names the run.
    from benchmarks.soaks.sessions import soak

    runs.append(soak(SESSIONS // options.part, seed))
    lines, flat = table(runs)
    took = perf_counter() - began
    if options.json:
        print(json.dumps({"seed": seed, "flat": flat, "seconds": took, "runs": [vars(run) for run in runs]}))
    else:
        print("\n".join([*lines, "", f"{'flat' if flat else 'NOT FLAT'} within 5 %, in {took:.0f} s"]))
    sys.exit(0 if flat else 1)


def _calls(backend: str, calls: int, seed: int) -> Run:
    """Run the calls in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.soaks.calls", backend, str(calls), str(seed)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return Run(**json.loads(done.stdout))


if __name__ == "__main__":
    main()
