"""budget: stops the work on one prompt after a number of tool calls, or when it has taken too long."""

from __future__ import annotations

import time

from agent_hooks import AgentStart, HookAPI, HookContext, Stop, ToolCall

CALLS = 50
MINUTES = 30


def register(api: HookAPI) -> None:
    """Subscribe the handlers."""
    # What is used up, by session; another agent may have several at once.
    calls: dict[str, int] = {}
    began: dict[str, float] = {}

    @api.on("agent_start")
    async def begin(event: AgentStart, ctx: HookContext) -> None:
        """Begin to count anew with each prompt."""
        calls[ctx.session_id] = 0
        began[ctx.session_id] = time.monotonic()

    @api.on("tool_call")
    async def budget(event: ToolCall, ctx: HookContext) -> Stop | None:
        """Count the calls; `Stop` blocks this one and ends the run."""
        calls[ctx.session_id] = calls.get(ctx.session_id, 0) + 1
        minutes = (time.monotonic() - began.get(ctx.session_id, time.monotonic())) / 60
        if calls[ctx.session_id] > CALLS:
            return Stop(f"the budget of {CALLS} tool calls for one prompt is used up")
        if minutes > MINUTES:
            return Stop(f"the budget of {MINUTES} minutes for one prompt is used up")
        return None
