"""What `import agent_hooks` adds to the start of a program."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

from benchmarks.harness import Effort, Rounds, Row
from benchmarks.peer_runs import Peers

PROGRAMS = {"bare": "pass", "agent_hooks": "import agent_hooks", "asyncio": "import asyncio", "anyio": "import anyio"}
MUST = 6.0


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Start programs in turn."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for number in range(4 if effort.quick else 26):
        for name, program in PROGRAMS.items():
            begin = perf_counter()
            subprocess.run([sys.executable, "-I", "-c", program], check=True)
            if number:  # the first one fills the caches
                times[name].append(perf_counter() - begin)
    rounds = Rounds(times)
    beside = {name: rounds.ratio(name, "bare") for name in ("asyncio", "anyio")}
    note = "to a bare interpreter"
    return [Row("import agent_hooks", rounds.ratio("agent_hooks", "bare"), must=MUST, peers=beside, note=note)]
