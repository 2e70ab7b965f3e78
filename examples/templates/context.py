"""context: tells the model at each prompt which branch is checked out, and which files have changed."""

from __future__ import annotations

from agent_hooks import AddContext, AgentStart, HookAPI, HookContext


def register(api: HookAPI) -> None:
    """Subscribe the handlers."""

    @api.on("agent_start")
    async def context(event: AgentStart, ctx: HookContext) -> AddContext | None:
        """Add a text after the prompt; the person's own words stay as they are."""
        done = await ctx.exec("git", ["status", "--short", "--branch"], timeout=5)
        # Outside of a git working tree there is nothing to tell.
        return AddContext(f"git status says:\n{done.stdout}") if done.code == 0 else None
