"""The cost of handlers that do not listen to an event: nothing."""

from __future__ import annotations

import asyncio
from time import thread_time
from typing import Any

from agent_hooks import HookAPI, HookRunner, LoadedHook, ToolCall
from benchmarks.harness import Effort, Row, interleave, unrolled
from benchmarks.hooks import TOOL_CALL, nothing
from benchmarks.peer_runs import Peers

HOOKS, HANDLERS = 1000, 10
MUST, GOAL = 1.25, 1.1


def hook(number: int, *subscriptions: tuple[str, str]) -> LoadedHook:
    """Return a hook with a handler for each event and tool."""
    api = HookAPI(f"hook_{number}.py")
    on: Any = api.on
    for event, tool in subscriptions:
        on(event, nothing, tool=tool)
    return LoadedHook(f"hook_{number}.py", f"hook_{number}.py", f"hook_{number}", api)


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure ten handlers that listen to an event, alone and among 10,000 that do not."""
    listening = [("tool_call", "bash")] * 10
    others = [
        hook(number, *[(event, f"tool_{number}") for event in ("tool_call", "tool_result")] * (HANDLERS // 2))
        for number in range(HOOKS)
    ]
    sides = {}
    runners = {
        "alone": HookRunner([hook(0, *listening)], cwd="."),
        "among": HookRunner([*others, hook(HOOKS, *listening)], cwd="."),
    }
    for name, runner in runners.items():
        sides[name] = unrolled("await emit(event)", emit=runner.emit, event=TOOL_CALL)
    rounds = asyncio.run(interleave(sides, effort))
    first = asyncio.run(_first_of_a_tool(runners["among"]))
    return [
        Row(
            f"emit to 10 of {HOOKS * HANDLERS:,} handlers",
            rounds.ratio("among", "alone"),
            must=MUST,
            goal=GOAL,
            note="to the same 10 alone",
        ),
        Row("the first call of a tool among them", first * 1e3, "ms", note="searches all handlers, once for each tool"),
    ]


async def _first_of_a_tool(runner: HookRunner) -> float:
    event = ToolCall(tool_name="new", tool_call_id="1", input={})
    begin = thread_time()
    await runner.emit(event)
    return thread_time() - begin
