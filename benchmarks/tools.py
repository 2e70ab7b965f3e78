"""What hooks add to a tool call."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio

from agent_hooks import HookAPI, wrap_tool
from benchmarks.harness import Effort, Row, Side, bare_await, interleave, unrolled
from benchmarks.hooks import INPUT, BareTool, nothing, runner_of
from benchmarks.peer_runs import Peers

TO_BARE = {0: (4.0, 3.0), 1: (35.0, 22.0)}
AHEAD_OF_PI = 10  # hooks of each kind; with one, Node's timers are the cheaper ones
TO_PYDANTIC_AI = (0.15, 0.07)


def wrapped(count: int) -> Side:
    """Return a side that calls a tool with that many gates before it and observers of its result after it."""

    def subscribe(api: HookAPI) -> None:
        for _ in range(count):
            api.on("tool_call", nothing)
            api.on("tool_result", nothing)

    return call_of(wrap_tool(BareTool(), runner_of(subscribe)))


class NaiveTool(BareTool):
    """The wrapper one would write first: a scope with a deadline around each handler."""

    async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> Any:
        with anyio.fail_after(30):
            await nothing(input, None)  # type: ignore[arg-type]
        output = await super().execute(tool_call_id, input, on_update=on_update)
        with anyio.fail_after(30):
            await nothing(output, None)  # type: ignore[arg-type]
        return output


def call_of(tool: Any) -> Side:
    """Return a side that calls the tool."""
    return unrolled('await execute("1", i)', execute=tool.execute, i=INPUT)


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure on asyncio."""
    sides = {"floor": bare_await(), "bare": call_of(BareTool()), "naive": call_of(NaiveTool())}
    sides |= {f"{count}": wrapped(count) for count in (0, 1, 10)}
    rounds = asyncio.run(interleave(sides, effort))
    rows = []
    for count, (must, goal) in TO_BARE.items():
        name = f"wrapped tool, {count}+{count} async" if count else "wrapped tool, no hooks"
        beside = {"naive scope": rounds.ratio("naive", "bare")} if count else {}
        measured = rounds.ratio(f"{count}", "bare")
        rows.append(Row(name, measured, must=must, goal=goal, peers=beside, note="to the bare tool"))
    for count in (1, 10):
        beside = {name: took * 1e6 for name, took in peers.seconds("tool", count).items()}
        took = rounds.seconds(f"{count}") * 1e6
        note = "absolute: another language, another floor"
        goal = beside.get("pi") if count == AHEAD_OF_PI else None
        rows.append(Row(f"wrapped tool, {count}+{count} async", took, "µs", goal=goal, peers=beside, note=note))
    for count in (1, 10):
        must, goal = TO_PYDANTIC_AI
        peer = peers.floors("added", count).get("pydantic_ai")
        if peer is not None:
            added = (rounds.seconds(f"{count}") - rounds.seconds("bare")) / rounds.seconds("floor")
            note = f"what is added to a call, to {peer:,.0f} bare awaits"
            rows.append(
                Row(f"added, {count}+{count} async, to pydantic-ai", added / peer, must=must, goal=goal, note=note)
            )
    return rows
