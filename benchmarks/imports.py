"""The time that `import agent_hooks` adds to the start of a program."""

from __future__ import annotations

import resource
import subprocess
import sys

from benchmarks.harness import Effort, Rounds, Row
from benchmarks.peer_runs import Peers

PEERS = ("msgspec", "asyncio", "anyio")
PROGRAMS = {"bare": "pass", **{name: f"import {name}" for name in ("agent_hooks", *PEERS)}}
MUST, GOAL = 5.5, 4.5


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Start programs in turn, and take the processor time of each."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for number in range(4 if effort.quick else 26):
        for name, program in PROGRAMS.items():
            before = spent()
            subprocess.run([sys.executable, "-I", "-c", program], check=True)
            # The first round fills the caches.
            if number:
                times[name].append(spent() - before)
    rounds = Rounds(times)
    beside = {name: rounds.ratio(name, "bare") for name in PEERS}
    note = "to a bare interpreter"
    measured = rounds.ratio("agent_hooks", "bare")
    return [Row("import agent_hooks", measured, must=MUST, goal=GOAL, peers=beside, note=note)]


def spent() -> float:
    """Return the processor time of the processes that have ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
