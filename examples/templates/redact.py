"""redact: hides customer numbers in the results of tools, before the model gets them."""

from __future__ import annotations

import re

from agent_hooks import HookAPI, HookContext, Replace, TextContent, ToolResult

# The built-in redaction hides keys and tokens already; this is for your own secrets.
SECRET = re.compile(r"\bcus_\w+")


def register(api: HookAPI) -> None:
    """Subscribe the handlers."""

    @api.on("tool_result")
    async def redact(event: ToolResult, ctx: HookContext) -> Replace | None:
        """Return another content for the result; `None` leaves it as it is."""
        content = [
            TextContent(SECRET.sub("cus_***", block.text)) if isinstance(block, TextContent) else block
            for block in event.content
        ]
        return None if content == list(event.content) else Replace(content=content)
