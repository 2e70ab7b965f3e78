"""What one event costs: floors, deadlines, and handlers that suspend."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import trio

from benchmarks.harness import Effort, Rounds, Row, Side, bare_await, interleave, unrolled
from benchmarks.hooks import TOOL_CALL, TURN_END, nothing, runner_with
from benchmarks.peer_runs import Peers

TARGETS = {  # must and goal, times as many bare awaits as there are handlers
    ("none", 0): (2.0, 1.5),
    ("turn_end", 1): (8.0, 6.0),
    ("turn_end", 10): (4.2, 3.5),
    ("tool_call", 1): (6.0, 4.5),
    ("tool_call", 10): (3.5, 2.1),
}
DEADLINES = ("pydantic_ai", "pi")  # peers that have them
TO_PLUGGY = {1: (0.65, 0.5), 10: (0.95, 0.85)}
SUSPENDS = (2.3, 2.0)
TO_FAIL_AFTER = {1: (0.8, 0.7), 10: (0.15, 0.1)}


async def suspends(event: Any, ctx: Any) -> None:
    """Let the loop take one turn."""
    await asyncio.sleep(0)


async def naive(handlers: list[Any], event: Any) -> None:
    """Dispatch as one would write it first: a scope with a deadline for each handler."""
    for handler in handlers:
        with anyio.fail_after(30):
            await handler(event, None)


async def loop(handlers: list[Any], event: Any) -> None:
    """Call the handlers, and nothing else."""
    for handler in handlers:
        answer = handler(event, None)
        if answer is not None:
            await answer


async def least(handlers: list[Any], event: Any) -> None:
    """Call the handlers so that a first suspension would be seen, and nothing else: the floor of any deadline.

    No event, no context, no nesting, no lanes, no stats, no answers, and what is raised goes through.
    """
    coro = loop(handlers, event)
    if next(coro.__await__(), least) is not least:
        raise AssertionError("these handlers do not suspend")


async def naive_trio(handlers: list[Any], event: Any) -> None:
    """Do the same without anyio in between."""
    for handler in handlers:
        with trio.fail_after(30):
            await handler(event, None)


async def least_trio(handlers: list[Any], event: Any) -> None:
    """Call the handlers in the one scope that a deadline needs there, and nothing else."""
    with trio.CancelScope():
        await loop(handlers, event)


def emit(event_name: str, count: int) -> Side:
    """Return a side that emits one event to that many handlers."""
    event = TURN_END if event_name == "turn_end" else TOOL_CALL
    return unrolled("await emit(event)", emit=runner_with(event_name, count).emit, event=event)


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure, on asyncio and then on trio."""
    rows = _floors(asyncio.run(interleave(_sides(), effort)), peers)
    rows += _suspending(effort)
    return rows + _on_trio(effort)


def _sides() -> dict[str, Side]:
    sides = {
        "bare": bare_await(),
        "none 0": unrolled("await emit(event)", emit=runner_with("turn_end", 0).emit, event=TURN_END),
    }
    for event, count in TARGETS:
        if count:
            sides[f"{event} {count}"] = emit(event, count)
    for count in (1, 10):
        sides[f"naive {count}"] = unrolled("await naive(h, e)", naive=naive, h=[nothing] * count, e=TURN_END)
        sides[f"least {count}"] = unrolled("await least(h, e)", least=least, h=[nothing] * count, e=TURN_END)
    return sides


def _floors(rounds: Rounds, peers: Peers) -> list[Row]:
    rows = []
    for (event, count), (must, goal) in TARGETS.items():
        beside = {}
        if event == "turn_end":
            beside = {
                "naive scope": rounds.ratio(f"naive {count}", "bare", count),
                "empty loop": rounds.ratio(f"least {count}", "bare", count),
            }
        if count:
            found = peers.floors("dispatch", count)
            beside |= {name: found[name] / count for name in found if event == "turn_end" or name not in DEADLINES}
        kind = {"none": "no handler", "turn_end": "deadline", "tool_call": "no deadline"}[event]
        name = f"emit, {kind}" + (f", {count} async" if count else "")
        measured = rounds.ratio(f"{event} {count}", "bare", count or 1)
        rows.append(Row(name, measured, must=must, goal=goal, peers=beside, note="to as many bare awaits"))
    pluggy = {count: peers.floors("dispatch", count).get("pluggy") for count in TO_PLUGGY}
    for count, (must, goal) in TO_PLUGGY.items():
        if (peer := pluggy[count]) is not None:
            measured = rounds.ratio(f"turn_end {count}", "bare") / peer
            note = "both to the bare await of their own process"
            rows.append(Row(f"emit, deadline, {count} async, to pluggy", measured, must=must, goal=goal, note=note))
    return rows


def _suspending(effort: Effort) -> list[Row]:
    sides = {
        "bare": unrolled("await f(a, b)", f=suspends, a=1, b=2),
        "emit": unrolled("await emit(event)", emit=runner_with("turn_end", 1, suspends).emit, event=TURN_END),
    }
    rounds = asyncio.run(interleave(sides, effort))
    must, goal = SUSPENDS
    note = "to the same handler, awaited"
    return [Row("emit, deadline, 1 that suspends", rounds.ratio("emit", "bare"), must=must, goal=goal, note=note)]


def _on_trio(effort: Effort) -> list[Row]:
    sides = {}
    for count in TO_FAIL_AFTER:
        sides[f"emit {count}"] = emit("turn_end", count)
        sides[f"naive {count}"] = unrolled("await naive(h, e)", naive=naive_trio, h=[nothing] * count, e=TURN_END)
        sides[f"least {count}"] = unrolled("await least(h, e)", least=least_trio, h=[nothing] * count, e=TURN_END)
    rounds = trio.run(interleave, sides, effort)
    return [
        Row(
            f"trio: emit, deadline, {count} async",
            rounds.ratio(f"emit {count}", f"naive {count}"),
            must=must,
            goal=goal,
            peers={"empty scope": rounds.ratio(f"least {count}", f"naive {count}")},
            note="to a trio.fail_after each",
        )
        for count, (must, goal) in TO_FAIL_AFTER.items()
    ]
