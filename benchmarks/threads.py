"""The commonest handler, a plain `def`, which runs in a thread, beside `asyncio.to_thread` in the same run.

A call in a thread wakes another thread twice.  On one core that is a switch, on two cores it is an interrupt, which takes
several times as long; so both are measured, each in a process that may use so many cores and no more.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from time import perf_counter
from typing import Any

import anyio.to_thread

from benchmarks.harness import FULL, QUICK, Effort, NotHereError, Row, attempt, interleave, unrolled
from benchmarks.hooks import TOOL_CALL, runner_with
from benchmarks.peer_runs import ROOT, Peers

# Must and goal, by the number of cores.
TARGETS = {2: (1.1, 1.0), 1: (1.3, 1.0)}


def judge(event: Any, ctx: Any) -> None:
    """Have no opinion, as a plain function."""


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure on two cores, then on one."""
    rows = []
    for cores in TARGETS:
        rows += attempt(_name(cores), lambda cores=cores: [_on(cores, effort)])
    return rows


def _name(cores: int) -> str:
    return f"emit, 1 plain def, {cores} core{'s' * (cores > 1)}"


def _on(cores: int, effort: Effort) -> Row:
    if not hasattr(os, "sched_setaffinity"):
        raise NotHereError("not measured: this system cannot bind a process to a core")
    if len(os.sched_getaffinity(0)) < cores:
        raise NotHereError(f"not measured: this machine has fewer than {cores} cores")
    command = [sys.executable, "-m", "benchmarks.threads", str(cores), *(["--quick"] if effort.quick else [])]
    found = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    must, goal = TARGETS[cores]
    note = f"to asyncio.to_thread; {found['emit'] * 1e6:.0f} µs, and {found['to_thread'] * 1e6:.0f}"
    beside = {"anyio.to_thread": found["anyio"] / found["to_thread"]}
    return Row(_name(cores), found["ratio"], must=must, goal=goal, peers=beside, note=note)


def main() -> None:
    """Bind this process to some cores, measure, and print one JSON object."""
    cores = int(sys.argv[1])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    emit, statement = runner_with("tool_call", 1, judge).emit, "await run(f, e, None)"
    sides = {
        "emit": unrolled("await emit(event)", clock=perf_counter, emit=emit, event=TOOL_CALL),
        "to_thread": unrolled(statement, clock=perf_counter, run=asyncio.to_thread, f=judge, e=TOOL_CALL),
        "anyio": unrolled(statement, clock=perf_counter, run=anyio.to_thread.run_sync, f=judge, e=TOOL_CALL),
    }
    rounds = asyncio.run(interleave(sides, QUICK if "--quick" in sys.argv else FULL))
    print(json.dumps({**{side: rounds.seconds(side) for side in sides}, "ratio": rounds.ratio("emit", "to_thread")}))


if __name__ == "__main__":
    main()
