"""`python -m benchmarks.soak [--events N | --seconds S] [--json]`: does memory grow with the events of a long day?

Events come in batches: wrapped tool calls with two gates and two observers, one of which suspends, calls that are
blocked, handlers that fail, calls of tools that a model invents, and the turns around them.  After each batch
the allocated blocks of the interpreter and the memory of the process are noted; the slope is that of a straight line
through the later half, when the caches are full.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import sys
from pathlib import Path
from statistics import linear_regression
from time import perf_counter
from typing import Any

from agent_hooks import Block, HookAPI, HookRunner, ToolCall, wrap_tool
from benchmarks.harness import Row
from benchmarks.hooks import TURN_END, BareTool, nothing, runner_of

DAY = 1_000_000
# Calls in one batch; each is several events.
CALLS = 500
# Events, until the caches are full.
SETTLED = 300_000
# KiB per 100,000 events.
GOAL = 100.0
STATM = Path("/proc/self/statm")


class NamedTool(BareTool):
    """A tool with a name of its own."""

    def __init__(self, name: str) -> None:
        self.name = name


async def suspends(event: Any, ctx: Any) -> None:
    """Let the loop take one turn."""
    await asyncio.sleep(0)


async def gate(event: Any, ctx: Any) -> Block | None:
    """Block one command."""
    return Block("dangerous") if event.input["command"] == "rm" else None


async def fails(event: Any, ctx: Any) -> None:
    """Raise for one tool."""
    if event.tool_name == "fails":
        raise RuntimeError("as the soak wants")


def subscribe(api: HookAPI) -> None:
    """Subscribe handlers to the events of a turn."""
    on: Any = api.on
    for event, handler in [
        ("tool_call", gate),
        ("tool_call", nothing),
        ("tool_result", suspends),
        ("after_tool_call", fails),
        ("turn_end", nothing),
    ]:
        on(event, handler)


def memory() -> tuple[float, float]:
    """Return the KiB of the process, and the thousands of allocated blocks."""
    gc.collect()
    if STATM.exists():
        size = int(STATM.read_text().split()[1]) * resource.getpagesize() / 1024
    # The peak of the process; if it does not grow, neither does the memory.
    else:
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return size, sys.getallocatedblocks() / 1000


async def batch(runner: HookRunner, tools: list[Any], number: int) -> int:
    """Run one batch, and return the number of events that the observer got."""
    seen = 0

    def count(event: Any) -> None:
        nonlocal seen
        seen += 1

    undo = runner.observe(count)
    for each in range(CALLS):
        await tools[each % len(tools)].execute(f"{each}", {"command": "rm" if each % 50 == 0 else "ls"})
        if each % 5 == 0:
            await runner.emit(TURN_END)
        # A name that a model invents; the runner must not keep them all.
        if each % 5 == 1:
            await runner.emit(ToolCall(tool_name=f"tool_{number}_{each}", tool_call_id="1", input={"command": "ls"}))
    undo()
    return seen


async def soak(events: int, seconds: float) -> list[tuple[int, float, float]]:
    """Run up to so many events or seconds; return events, KiB and thousands of blocks after each batch."""
    runner = runner_of(subscribe)
    runner.on_error(lambda error: None)
    tools = [wrap_tool(NamedTool(name), runner) for name in ("bash", "read", "write", "edit", "fails")]
    notes: list[tuple[int, float, float]] = []
    total, number, begin = 0, 0, perf_counter()
    async with runner:
        while len(notes) < 4 or (total < events and perf_counter() - begin < seconds):
            total += await batch(runner, tools, number)
            number += 1
            notes.append((total, *memory()))
    return notes


def slope(notes: list[tuple[int, float, float]], column: int) -> float:
    """Return the growth of a column in 100,000 events."""
    later = notes[len(notes) // 2 :]
    return linear_regression([note[0] for note in later], [note[column] for note in later]).slope * 100_000


def main() -> None:
    """Run, and print the slopes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument(
        "--events", type=int, default=DAY, help=f"stop after this number of events; {DAY:,} are a long day"
    )
    parser.add_argument("--seconds", type=float, default=20, help="stop after this number of seconds; 0 for no limit")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    begin = perf_counter()
    notes = asyncio.run(soak(options.events, options.seconds or float("inf")))
    took = perf_counter() - begin
    row = Row("memory per 100,000 events", slope(notes, 1), "KiB", goal=GOAL)
    blocks = slope(notes, 2) * 1000
    if options.json:
        points = [{"events": events, "kib": size, "kiloblocks": count} for events, size, count in notes]
        print(json.dumps({"rows": [row.as_dict()], "blocks": blocks, "seconds": took, "points": points}))
        return
    print(f"{notes[-1][0]:,} events in {took:.0f} s, memory {notes[0][1] / 1024:.1f} → {notes[-1][1] / 1024:.1f} MiB")
    print(f"slope per 100,000 events: {row.measured:.1f} KiB, {blocks:,.0f} allocated blocks")
    verdict = row.verdict if notes[-1][0] >= SETTLED else f"too short to judge: it takes {SETTLED:,} events"
    print(f"target: no more than {GOAL:.0f} KiB; {verdict}")


if __name__ == "__main__":
    main()
