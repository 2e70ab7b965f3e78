"""rewrite: makes the agent install exactly the locked packages."""

from __future__ import annotations

import re

from agent_hooks import BeforeToolCall, HookAPI, HookContext, Rewrite


def register(api: HookAPI) -> None:
    """Subscribe the handlers."""

    @api.on("before_tool_call", tool="bash")
    async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite | None:
        """Return the input that the tool gets instead; all gates judge the changed call."""
        changed = re.sub(r"\bnpm install$", "npm ci", event.params["command"])
        if changed == event.params["command"]:
            return None
        return Rewrite({**event.params, "command": changed})
