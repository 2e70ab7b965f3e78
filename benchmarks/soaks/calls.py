"""`python -m benchmarks.soaks.calls BACKEND CALLS SEED`: wrapped tool calls with ten hooks, faults and records.

Each hook is a file.  A tenth of the calls has a fault, which the seed chooses: a handler raises, exits, takes too long,
answers in a wrong shape, leaves a thread, and so on.  The process prints its figures as JSON.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio

from agent_hooks import (
    AgentEnd,
    AgentStart,
    HookRunner,
    ToolOutput,
    TurnStart,
    load_hooks,
    wrap_tools,
)
from agent_hooks.guards import builtin_guards
from agent_hooks.records import Records
from benchmarks.hooks import TURN_END
from benchmarks.soaks.flatness import Run, figures_of

POINTS = 60
"""The number of times at which the figures are noted."""
HOOKS = {
    "gate": """
        @api.on("tool_call")
        async def gate(event, ctx):
            if "forbidden" in event.input["command"]:
                return {"block": True, "reason": "forbidden"}
    """,
    "plain_gate": """
        @api.on("tool_call", tool="bash")
        def plain(event, ctx):
            return None
    """,
    "rewriter": """
        @api.on("before_tool_call", tool="write")
        async def rewrite(event, ctx):
            return {"params": {**event.params, "command": event.params["command"].strip()}}
    """,
    "result": """
        @api.on("tool_result")
        async def replace(event, ctx):
            if event.tool_name == "read":
                return {"content": "shorter"}
    """,
    "observer": """
        seen = {}
        @api.on("after_tool_call")
        async def observe(event, ctx):
            seen[event.tool_name] = seen.get(event.tool_name, 0) + 1
            await anyio.sleep(0)
    """,
    "interceptor": """
        @api.intercept("tool.before")
        async def before(input, output):
            output.args["command"] = output.args["command"].rstrip()
    """,
    "after": """
        @api.intercept("tool.after")
        def after(input, output):
            output.result = output.result
    """,
    "turns": """
        turns = []
        @api.on("turn_end")
        async def end(event, ctx):
            turns.append(event.turn_index)
            del turns[:-10]
        @api.on("agent_start")
        async def start(event, ctx):
            await ctx.exec("true", [])
    """,
    "task": """
        @api.on("session")
        async def session(event, ctx): ...
        async def forever():
            while True:
                await anyio.sleep(0.5)
        api.start_task(forever)
    """,
    "faulty": """
        import sys, threading, time
        class Unshowable:
            def __repr__(self): raise ValueError("as the soak wants")
        async def long():
            await anyio.sleep(60)
        faults = {
            "raise": lambda: 1 / 0,
            "exit": lambda: sys.exit(3),
            "generator": lambda: next(iter(())),
            "cause": lambda: (_ for _ in ()).throw(RuntimeError("x" * 1_000_000)),
            "shape": lambda: 42,
            "unshowable": Unshowable,
            "large": lambda: {"block": True, "reason": "y" * 1_000_000},
            "deep": lambda: (f := lambda: f())(),
            "group": lambda: (_ for _ in ()).throw(BaseExceptionGroup("two", [ValueError(), SystemExit()])),
            "thread": lambda: threading.Thread(target=time.sleep, args=(0.01,)).start(),
            "subscribe": lambda: api.on("turn_start", print)(),
            "awaitable": lambda: anyio.sleep(0),
            "long": long,
        }
        @api.on("tool_call")
        async def fault(event, ctx):
            kind = event.input.get("fault")
            if kind:
                answer = faults[kind]()
                return (await answer) if kind in ("long", "awaitable") else answer
        @api.on("tool_result")
        async def faulty_result(event, ctx):
            if event.input.get("fault") == "raise":
                raise SystemExit("as the soak wants")
        @api.on("after_tool_call")
        def faulty_observer(event, ctx):
            if event.params.get("fault"):
                raise KeyError("as the soak wants")
    """,
}
COMMON = ("raise", "exit", "generator", "shape", "unshowable", "group", "thread", "subscribe", "awaitable")
RARE = ("cause", "large", "deep", "long")
LIMIT = 0.02
"""Seconds of a handler; a fault that takes long ends then."""


class AnyTool:
    """A tool of any name that echoes its command."""

    description = "Echo."
    input_schema: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}}  # noqa: RUF012

    def __init__(self, name: str) -> None:
        self.name = name

    async def execute(self, tool_call_id: str, input: dict[str, Any], **options: Any) -> ToolOutput:
        """Echo the command, with a secret in it, or fail."""
        if input["command"] == "fails":
            raise RuntimeError("as the soak wants")
        return ToolOutput(f"ran {input['command']}")


def write_hooks(folder: Path) -> list[str]:
    """Write the hook files, and return their paths."""
    for name, body in HOOKS.items():
        lines = [line[4:] for line in body.splitlines() if line.strip()]
        (folder / f"{name}.py").write_text("import anyio\n\ndef register(api):\n" + "\n".join(lines) + "\n")
    return [str(folder / f"{name}.py") for name in HOOKS]


def input_of(choice: random.Random, number: int) -> dict[str, Any]:
    """Return the input of a call; a tenth of the calls has a fault."""
    if choice.random() < 0.1:
        kinds = RARE if choice.random() < 0.02 else COMMON
        return {"command": f"echo {number}", "fault": choice.choice(kinds)}
    return {"command": choice.choice(["ls -la", "forbidden", "fails", f"echo {number} ", "git status"])}


async def soak(calls: int, seed: int, folder: Path) -> Run:
    """Make the calls, and return the figures."""
    choice = random.Random(seed)
    loaded = await load_hooks(write_hooks(folder), cwd=folder)
    assert not loaded.errors, loaded.errors
    runner = HookRunner(
        loaded,
        cwd=folder,
        tool_call_timeout=LIMIT,
        guards=builtin_guards(),
        records=Records(home=str(folder / "home")),
    )
    failures = blocked = 0

    def count(error: object) -> None:
        nonlocal failures
        failures += 1

    runner.on_error(count)
    names = ("bash", "read", "write", "edit", "mcp__server__tool")
    tools = wrap_tools([AnyTool(name) for name in names], runner)
    run = Run(f"{calls:,} calls, {sys.argv[1]}")
    async with runner:
        for number in range(calls):
            if number % 100 == 0:
                await runner.emit(AgentStart()) if number % 1000 == 0 else None
                await runner.emit(TurnStart(turn_index=number, timestamp=0))
            output = await choice.choice(tools).execute(f"{number}", input_of(choice, number))
            blocked += bool(output.is_error)
            if number % 100 == 99:
                await runner.emit(TURN_END)
            if number % max(calls // POINTS, 1) == 0:
                gc.collect()
                run.note({**figures_of(), "modules": len(sys.modules)})
        await runner.emit(AgentEnd())
    run.remarks.append(f"{failures:,} failures of handlers, {blocked:,} results with an error")
    return run


def main() -> None:
    """Run, and print the figures."""
    backend, calls, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="agent-hooks-soak-") as name:
        os.environ["XDG_CACHE_HOME"] = os.path.join(name, "cache")
        run = anyio.run(soak, calls, seed, Path(name), backend=backend)
    print(json.dumps({"name": run.name, "figures": run.figures, "remarks": run.remarks}))


if __name__ == "__main__":
    main()
