r"""Warn the model when the same call has failed twice in a row, and end the run when it fails once more.

Try it:  agent-hooks run --hook examples/hooks/stop_when_stuck.py $'@bash false\n---\n@bash false' && echo 'once more?'
"""

import json

from agent_hooks import AddContext, AgentStart, HookAPI, HookContext, Stop, ToolResult

# The failures of one call in a row that end the run.
TIMES = 3
ADVICE = "This call has failed {0} times in a row: find out why before you try it again, or the run ends."


def register(api: HookAPI) -> None:
    # The last call that failed in each session, and how often in a row.
    failed: dict[str, tuple[str, int]] = {}

    @api.on("agent_start")
    async def begin(event: AgentStart, ctx: HookContext) -> None:
        failed.pop(ctx.session_id, None)

    @api.on("tool_result")
    async def count(event: ToolResult, ctx: HookContext) -> AddContext | Stop | None:
        if not event.is_error:
            failed.pop(ctx.session_id, None)
            return None
        call = json.dumps([event.tool_name, dict(event.input)], sort_keys=True, default=str)
        last, times = failed.get(ctx.session_id, ("", 0))
        times = times + 1 if call == last else 1
        failed[ctx.session_id] = call, times
        if times >= TIMES:
            return Stop(f"the same call has failed {times} times in a row")
        return AddContext(ADVICE.format(times)) if times == TIMES - 1 else None
