"""gate: stops commands that delete trees by force."""

from __future__ import annotations

from agent_hooks import Block, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    """Subscribe the handlers; agent-hooks calls this once, when it loads the hook."""

    @api.on("tool_call", tool="bash")
    async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        """Judge a command before it runs: a block stops it, and `None` has no objection."""
        if "rm -rf" in event.input["command"]:
            return Block("deleting a tree needs a person")
        return None
