"""Three promises in one file: ask before anything leaves the machine, save the files before each prompt, hide customer
ids in the results of tools.

Try it:  agent-hooks run --hook examples/hooks/safe_session.py '@bash git push'
In Claude Code:  cp examples/hooks/safe_session.py .agent/hooks/ && agent-hooks install claude-code

`agent-hooks checkpoints list` and `restore` bring files back.  The list of questions lives as long as the session.
"""

import re

from agent_hooks import (
    AgentEnd,
    Ask,
    HookAPI,
    HookContext,
    Replace,
    TextContent,
    ToolCall,
    ToolResult,
    TurnStart,
    checkpoints,
)

LEAVES = re.compile(r"\b(git\s+push|npm\s+publish|twine\s+upload|docker\s+push|gh\s+(pr|release)\s+create)\b")
CUSTOMER = re.compile(r"\bcus_\w{8,}")


def register(api: HookAPI) -> None:
    asked: list[str] = []

    @api.on("tool_call", tool="bash")
    async def gate(event: ToolCall, ctx: HookContext) -> Ask | None:
        found = LEAVES.search(event.input["command"])
        if found is None:
            return None
        asked.append(found[0])
        return Ask(f"Let it {found[0]}?", event.input["command"])

    @api.on("turn_start")
    async def keep(event: TurnStart, ctx: HookContext) -> None:
        # Only the first turn: the files before the prompt.
        if event.turn_index > 0:
            return
        try:
            await checkpoints.create(ctx.cwd, ctx.session_id, event.entry_index)
        except checkpoints.CheckpointError as exc:
            ctx.ui.notify(f"no checkpoint: {exc}", "warning")

    @api.on("tool_result")
    async def hide(event: ToolResult, ctx: HookContext) -> Replace | None:
        content = [
            TextContent(CUSTOMER.sub("cus_***", block.text)) if isinstance(block, TextContent) else block
            for block in event.content
        ]
        return None if content == event.content else Replace(content=content)

    @api.on("agent_end")
    async def sum_up(event: AgentEnd, ctx: HookContext) -> None:
        if asked:
            ctx.ui.notify(f"asked about in this session: {', '.join(asked)}")
