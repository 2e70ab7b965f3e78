"""gate: leaves pushing commits to people."""

from __future__ import annotations

from agent_hooks import Block, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    """Subscribe the handlers; agent-hooks calls this once, when it loads the hook."""

    @api.on("tool_call")
    async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        """Judge a call before it runs: a block stops it, and `None` has no objection."""
        # The effects are the same in every spelling: `cd x && git push`, `bash -c "git push"`, `P=push; git $P`.
        for transfer in event.effects.transfers:
            if transfer.program == "git" and transfer.direction == "out":
                return Block("pushing is for people")
        return None
