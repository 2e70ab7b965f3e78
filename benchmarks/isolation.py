"""A gate in a process of its own, beside the same gate inside of the agent: the round trip, the memory, the start.

A round trip switches between two processes twice, so the clock is that of the wall, and each call is timed alone: the
median of thousands is the time of a call while the machine is not busy with other things.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio

from agent_hooks import HookRunner, load_hooks
from agent_hooks.settings import HookIsolation, IsolationSettings
from benchmarks.harness import Effort, NotHereError, Row, attempt
from benchmarks.hooks import TOOL_CALL
from benchmarks.peer_runs import Peers

# Milliseconds that a round trip adds to a call.
MUST, GOAL = 0.3, 0.2
WARM = 100
GATE = """
from agent_hooks import Block

def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        if "rm" in event.input["command"]:
            return Block("no rm")
"""


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure on both backends."""
    rows = []
    for backend in ("asyncio", "trio"):
        rows += attempt(f"isolated gate, {backend}", lambda backend=backend: _measured(backend, effort))
    return rows


def _measured(backend: str, effort: Effort) -> list[Row]:
    return anyio.run(_rows, backend, 300 if effort.quick else 5000, backend=backend)


async def _rows(backend: str, calls: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "gate.py")
        path.write_text(GATE)
        inline = await load_hooks([path], cwd=directory)
        begun = perf_counter()
        loaded = await load_hooks(
            [path], cwd=directory, isolation=IsolationSettings(others=HookIsolation(mode="process"))
        )
        started = perf_counter() - begun
        async with HookRunner(inline, cwd=directory) as near, HookRunner(loaded, cwd=directory) as far:
            own, other = [], []
            for number in range(calls + WARM):
                first, second = await _timed(near), await _timed(far)
                if number >= WARM:
                    own.append(first)
                    other.append(second)
            process = loaded.hooks[0].process
            pid = None if process is None else process.pid
            assert pid is not None, "the hook has a process"
            memory = attempt(f"isolated gate, memory, {backend}", lambda: [_memory(backend, pid)])
    added = (median(other) - median(own)) * 1e3
    ordered = sorted(other)
    note = (
        f"added to {median(own) * 1e6:.0f} µs; of all {calls} calls, "
        f"a tenth took less than {ordered[calls // 10] * 1e6:.0f} µs, a tenth more than {ordered[-calls // 10] * 1e6:.0f}"
    )
    return [
        Row(f"isolated gate, round trip, {backend}", added, "ms", must=MUST, goal=GOAL, note=note),
        *memory,
        Row(f"isolated gate, start, {backend}", started * 1e3, "ms", note="from the start of the process to its hook"),
    ]


async def _timed(runner: HookRunner) -> float:
    begun = perf_counter()
    await runner.emit(TOOL_CALL)
    return perf_counter() - begun


def _memory(backend: str, pid: int) -> Row:
    """Return the memory of a process that it shares with no other one, and the sum with its part of the shared."""
    if sys.platform != "linux":
        raise NotHereError("not measured: only Linux tells the memory of another process by kind")
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    own = (kib["Private_Clean"] + kib["Private_Dirty"]) / 1024
    note = f"its own; {kib['Pss'] / 1024:.1f} with its part of shared pages, {kib['Rss'] / 1024:.1f} resident"
    return Row(f"isolated gate, memory, {backend}", own, "MiB", note=note)
