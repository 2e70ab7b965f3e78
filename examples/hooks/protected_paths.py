"""Keep `write` and `edit` out of .env, .git/ and node_modules/.

Try it:  agent-hooks run --hook examples/hooks/protected_paths.py '@write {"path": "node_modules/x.js", "content": ""}'

The built-in guards of `agent-hooks run` protect secrets like .env; this hook is for your other files.
"""

import os
from pathlib import Path

from agent_hooks import Block, HookAPI, HookContext, ToolCall

PROTECTED = {".env", ".git", "node_modules"}


def register(api: HookAPI) -> None:
    @api.on("tool_call", tool=["write", "edit"])
    async def protect(event: ToolCall, ctx: HookContext) -> Block | None:
        path = event.input["path"]
        # Both the path that the tool opens and the target of its symlinks: `a/../.env` and links to .git are blocked too.
        target = os.path.join(ctx.cwd, os.path.expanduser(path))
        parts = {*Path(os.path.normpath(target)).parts, *Path(os.path.realpath(target)).parts}
        if not parts & PROTECTED:
            return None
        ctx.ui.notify(f"kept {event.tool_name} out of {path}", "warning")
        return Block(f"{path} is protected")
