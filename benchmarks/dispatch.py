"""The cost of one event: floors, deadlines, and handlers that suspend, answer or raise."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anyio
import trio

from agent_hooks import Block, Replace, ToolResult
from benchmarks.harness import Effort, Rounds, Row, Side, attempt, bare_await, interleave, unrolled
from benchmarks.hooks import TOOL_CALL, TURN_END, nothing, runner_with
from benchmarks.peer_runs import Peers

# Must and goal, in as many bare awaits as there are handlers.
TARGETS = {
    ("none", 0): (1.8, 1.5),
    ("turn_end", 1): (13.5, 10.0),
    ("turn_end", 10): (3.6, 2.8),
    ("tool_call", 1): (13.5, 10.0),
    ("tool_call", 10): (3.65, 2.8),
}
# The peers that have deadlines.
DEADLINES = ("pydantic_ai", "pi")
TO_PLUGGY = {1: (0.85, 0.65), 10: (0.66, 0.5)}
SUSPENDS = (2.9, 2.2)
TO_FAIL_AFTER = {1: (1.1, 0.8), 10: (0.15, 0.1)}
TOOL_RESULT = ToolResult(tool_name="bash", tool_call_id="1", input={"command": "ls"}, content="done", is_error=False)


async def suspends(event: Any, ctx: Any) -> None:
    """Let the loop take one turn."""
    await asyncio.sleep(0)


async def blocks(event: Any, ctx: Any) -> Block:
    """Block the call."""
    return Block("not today")


async def replaces(event: Any, ctx: Any) -> Replace:
    """Replace the result."""
    return Replace(content="other")


async def raises(event: Any, ctx: Any) -> None:
    """Fail."""
    raise RuntimeError("as the benchmark wants")


async def caught(function: Any, event: Any) -> None:
    """Call a function that raises."""
    try:
        await function(event, None)
    except RuntimeError:
        pass


async def naive(handlers: list[Any], event: Any) -> None:
    """Dispatch in the most obvious way: a scope with a deadline for each handler."""
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
    """Call the handlers so that a first suspension would be noticed, and nothing else: the floor of any deadline.

    There are no events, contexts, nesting, lanes, stats and answers here, and exceptions go through.
    """
    coro = loop(handlers, event)
    if next(coro.__await__(), least) is not least:
        raise AssertionError("these handlers do not suspend")


async def naive_trio(handlers: list[Any], event: Any) -> None:
    """Do the same with trio's own scope."""
    for handler in handlers:
        with trio.fail_after(30):
            await handler(event, None)


async def least_trio(handlers: list[Any], event: Any) -> None:
    """Call the handlers in the one scope that a deadline needs on trio, and nothing else."""
    with trio.CancelScope():
        await loop(handlers, event)


def emit(event_name: str, count: int) -> Side:
    """Return a side that emits one event to that many handlers."""
    event = TURN_END if event_name == "turn_end" else TOOL_CALL
    return unrolled("await emit(event)", emit=runner_with(event_name, count).emit, event=event)


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure, on asyncio and then on trio."""
    return [
        *attempt("emit", lambda: _floors(asyncio.run(interleave(_sides(), effort)), peers)),
        *attempt("emit, deadline, 1 that suspends", lambda: _suspending(effort)),
        *attempt("emit, handlers that answer or raise", lambda: _answering(effort)),
        *attempt("emit with observers", lambda: _observed(effort)),
        *attempt("trio: emit", lambda: _on_trio(effort)),
    ]


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


def _floors(rounds: Rounds, peers: Peers) -> Iterator[Row]:
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
        yield Row(name, measured, must=must, goal=goal, peers=beside, note="to as many bare awaits")
    for count, (must, goal) in TO_PLUGGY.items():
        name, note = f"emit, deadline, {count} async, to pluggy", "both to the bare await of their own process"
        if (peer := peers.floors("dispatch", count).get("pluggy")) is None:
            yield Row(name, None, must=must, goal=goal, problem=peers.problem("pluggy"))
            continue
        yield Row(name, rounds.ratio(f"turn_end {count}", "bare") / peer, must=must, goal=goal, note=note)


def _suspending(effort: Effort) -> list[Row]:
    sides = {
        "bare": unrolled("await f(a, b)", f=suspends, a=1, b=2),
        "emit": unrolled("await emit(event)", emit=runner_with("turn_end", 1, suspends).emit, event=TURN_END),
    }
    rounds = asyncio.run(interleave(sides, effort))
    must, goal = SUSPENDS
    note = "to the same handler, awaited"
    return [Row("emit, deadline, 1 that suspends", rounds.ratio("emit", "bare"), must=must, goal=goal, note=note)]


def _answering(effort: Effort) -> Iterator[Row]:
    """Measure handlers whose answer or failure the runner has to act on."""
    kinds = {
        "that blocks": ("tool_call", TOOL_CALL, blocks),
        "that replaces": ("tool_result", TOOL_RESULT, replaces),
        "that raises and blocks": ("tool_call", TOOL_CALL, raises),
        "that raises and is left out": ("turn_end", TURN_END, raises),
    }
    sides = {"bare": bare_await(), "caught": unrolled("await caught(f, e)", caught=caught, f=raises, e=TURN_END)}
    for name, (event_name, event, handler) in kinds.items():
        runner = runner_with(event_name, 1, handler)
        runner.on_error(lambda error: None)
        sides[name] = unrolled("await emit(event)", emit=runner.emit, event=event)
    rounds = asyncio.run(interleave(sides, effort))
    for name in kinds:
        beside = {"try and except": rounds.ratio("caught", "bare")} if "raises" in name else {}
        note = f"to a bare await; {rounds.seconds(name) * 1e6:.1f} µs"
        yield Row(f"emit, 1 async {name}", rounds.ratio(name, "bare"), peers=beside, note=note)


def _observed(effort: Effort) -> Iterator[Row]:
    """Measure an event without handlers and with observers, as `runner.observe` adds them."""
    sides = {"bare": bare_await()}
    for count in (1, 10):
        runner = runner_with("turn_end", 0)
        for _ in range(count):
            runner.observe(lambda event: None)
        sides[f"{count}"] = unrolled("await emit(event)", emit=runner.emit, event=TURN_END)
    rounds = asyncio.run(interleave(sides, effort))
    for count in (1, 10):
        name = f"emit, no handler, {count} observer{'s' * (count > 1)}"
        yield Row(name, rounds.ratio(f"{count}", "bare", count), note="to as many bare awaits")


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
