"""The cost that hooks, guards and redaction add to a tool call."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from typing import Any

import anyio

from agent_hooks import HookAPI, HookRunner, ToolOutput, wrap_tool
from agent_hooks.guards import builtin_guards
from agent_hooks.redaction import Redactor
from benchmarks.harness import Effort, Rounds, Row, Side, attempt, bare_await, interleave, unrolled
from benchmarks.hooks import INPUT, BareTool, nothing, runner_of
from benchmarks.peer_runs import ROOT, Peers

# Must and goal, by the number of gates and of observers of the result.
TO_BARE = {0: (3.4, 3.0), 1: (84.0, 50.0)}
TO_PYDANTIC_AI = {1: (0.35, 0.2), 10: (0.055, 0.04)}
# Must in µs; the goal is to be ahead of pi.  With one of each, the timers of Node are cheaper than ours.
MICROSECONDS = {1: None, 10: 10.5}
CALLS = {"a command": {"command": "git status --short && ls -la src"}, "a file": {"path": "src/main.py", "limit": 100}}
LINE = "2026-01-01 12:00:00 INFO GET https://example.com/x?y=1 200 12 ms\n"
# The first call of a process imports the guards and their parser.
FIRST_CALL = """
import asyncio
from time import process_time
from agent_hooks import HookRunner, wrap_tool
from agent_hooks.guards import builtin_guards
from benchmarks.hooks import BareTool

tool = wrap_tool(BareTool(), HookRunner([], cwd=".", guards=builtin_guards()))
begin = process_time()
asyncio.run(tool.execute("1", {"command": "git status --short"}))
print(process_time() - begin)
"""


def wrapped(count: int) -> Side:
    """Return a side that calls a tool with `count` gates before it and `count` observers of its result after it."""

    def subscribe(api: HookAPI) -> None:
        for _ in range(count):
            api.on("tool_call", nothing)
            api.on("tool_result", nothing)

    return call_of(wrap_tool(BareTool(), runner_of(subscribe)))


class NaiveTool(BareTool):
    """The most obvious wrapper: a scope with a deadline around each handler."""

    async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> Any:
        with anyio.fail_after(30):
            await nothing(input, None)  # type: ignore[arg-type]
        output = await super().execute(tool_call_id, input, on_update=on_update)
        with anyio.fail_after(30):
            await nothing(output, None)  # type: ignore[arg-type]
        return output


class AnyTool(BareTool):
    """A tool that takes any input, and returns a text."""

    input_schema: dict[str, Any] = {"type": "object"}  # noqa: RUF012  # as the protocol of tools has it

    def __init__(self, text: str = "done") -> None:
        self.output = ToolOutput(text)


def call_of(tool: Any, input: dict[str, Any] = INPUT) -> Side:
    """Return a side that calls the tool."""
    return unrolled('await execute("1", i)', execute=tool.execute, i=input)


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure on asyncio."""
    return [
        *attempt("wrapped tool", lambda: _hooks(effort, peers)),
        *attempt("wrapped tool, guards", lambda: _guards(effort)),
        *attempt("wrapped tool, guards, the first call", lambda: _first_call(effort)),
        *attempt("wrapped tool, redactor", lambda: _redactor(effort)),
        *attempt("wrapped tool, observers", lambda: _observers(effort)),
    ]


def _hooks(effort: Effort, peers: Peers) -> Iterator[Row]:
    sides = {"floor": bare_await(), "bare": call_of(BareTool()), "naive": call_of(NaiveTool())}
    sides |= {f"{count}": wrapped(count) for count in (0, 1, 10)}
    rounds = asyncio.run(interleave(sides, effort))
    for count, (must, goal) in TO_BARE.items():
        name = f"wrapped tool, {count}+{count} async" if count else "wrapped tool, no hooks"
        beside = {"naive scope": rounds.ratio("naive", "bare")} if count else {}
        measured = rounds.ratio(f"{count}", "bare")
        yield Row(name, measured, must=must, goal=goal, peers=beside, note="to the bare tool")
    for count, must in MICROSECONDS.items():
        beside = {name: took * 1e6 for name, took in peers.seconds("tool", count).items()}
        took = rounds.seconds(f"{count}") * 1e6
        note = "absolute: another language, another floor"
        goal = beside.get("pi") if must is not None else None
        yield Row(f"wrapped tool, {count}+{count} async", took, "µs", must=must, goal=goal, peers=beside, note=note)
    for count, (must, goal) in TO_PYDANTIC_AI.items():
        name = f"added, {count}+{count} async, to pydantic-ai"
        if (peer := peers.floors("added", count).get("pydantic_ai")) is None:
            yield Row(name, None, must=must, goal=goal, problem=peers.problem("pydantic_ai"))
            continue
        added = (rounds.seconds(f"{count}") - rounds.seconds("bare")) / rounds.seconds("floor")
        note = f"the cost added to a call, to {peer:,.0f} bare awaits"
        yield Row(name, added / peer, must=must, goal=goal, note=note)


def _guards(effort: Effort) -> Iterator[Row]:
    """Measure the guards' whole step, with the look-ups of the machine that it needs."""
    tool = wrap_tool(AnyTool(), HookRunner([], cwd=".", guards=builtin_guards()))
    sides = {"bare": call_of(AnyTool())}
    sides |= {name: call_of(tool, asked) for name, asked in CALLS.items()}
    rounds = asyncio.run(interleave(sides, effort))
    for name in CALLS:
        yield _against_bare(f"wrapped tool, guards, {name}", rounds, name)


def _first_call(effort: Effort) -> Iterator[Row]:
    """Measure the first call of a process, after the import of the package."""
    command = [sys.executable, "-c", FIRST_CALL]
    took = [float(subprocess.check_output(command, cwd=ROOT)) for _ in range(2 if effort.quick else 12)]
    note = "of a new process; imports the guards and their parser"
    yield Row("wrapped tool, guards, the first call", median(took[1:]) * 1e3, "ms", note=note)


def _redactor(effort: Effort) -> Iterator[Row]:
    sides = {}
    for lines in (1, 60):
        runner = HookRunner([], cwd=".", redactor=Redactor(environ={"SERVICE_TOKEN": f"{1:032x}"}))
        sides[f"bare {lines}"] = call_of(AnyTool(LINE * lines))
        sides[f"{lines}"] = call_of(wrap_tool(AnyTool(LINE * lines), runner))
    rounds = asyncio.run(interleave(sides, effort))
    for lines in (1, 60):
        name = f"wrapped tool, redactor, {lines} line{'s' * (lines > 1)}"
        yield _against_bare(name, rounds, f"{lines}", f"bare {lines}")


def _observers(effort: Effort) -> Iterator[Row]:
    sides = {"bare": call_of(BareTool())}
    for count in (1, 10):
        runner = HookRunner([], cwd=".")
        for _ in range(count):
            runner.observe(lambda event: None)
        sides[f"{count}"] = call_of(wrap_tool(BareTool(), runner))
    rounds = asyncio.run(interleave(sides, effort))
    for count in (1, 10):
        yield _against_bare(f"wrapped tool, {count} observer{'s' * (count > 1)}", rounds, f"{count}")


def _against_bare(name: str, rounds: Rounds, side: str, bare: str = "bare") -> Row:
    note = f"to the bare tool; {rounds.seconds(side) * 1e6:.1f} µs"
    return Row(name, rounds.ratio(side, bare), note=note)
