"""pydantic-ai: its own hooks before and after a tool runs, with a timeout each, without the agent around them.

That is the least that they add to a tool call; the manager that calls them there costs extra.
"""

from __future__ import annotations

from pydantic_ai.capabilities import Hooks

from benchmarks.harness import Side, unrolled
from benchmarks.peers.common import measure

ARGS = {"command": "ls"}


class Call:
    """As much of a call and of a tool's definition as the hooks look at."""

    name = tool_name = "bash"


async def before(ctx, *, call, tool_def, args):
    """Have no opinion."""
    return args


async def after(ctx, *, call, tool_def, args, result):
    """Have no opinion."""
    return result


def hooks_with(count: int) -> Hooks:
    """Return that many hooks of each kind."""
    hooks = Hooks()
    for _ in range(count):
        hooks.on.before_tool_execute(timeout=30)(before)
        hooks.on.after_tool_execute(timeout=30)(after)
    return hooks


async def around(hooks: Hooks) -> None:
    """Call the hooks as a tool call does."""
    args = await hooks.before_tool_execute(None, call=Call, tool_def=Call, args=ARGS)
    await hooks.after_tool_execute(None, call=Call, tool_def=Call, args=args, result="done")


def dispatch(count: int) -> Side:
    """Return a side that asks that many hooks before a tool."""
    return unrolled(
        "await ask(None, call=c, tool_def=c, args=a)", ask=hooks_with(count).before_tool_execute, c=Call, a=ARGS
    )


def added(count: int) -> Side:
    """Return a side that runs the calls that hooks add to a tool call."""
    return unrolled("await around(h)", around=around, h=hooks_with(count))


measure("pydantic-ai-slim", {"dispatch": {1: dispatch(1), 10: dispatch(10)}, "added": {1: added(1), 10: added(10)}})
