"""Keep files from being changed: by a file tool, a command, or code within a command.

Try it:  agent-hooks run --hook examples/hooks/protected_paths.py '@bash echo x > uv.lock'

The built-in guards of `agent-hooks run` protect secrets like .env; this hook is for your other files, too.
"""

from agent_hooks import Block, HookAPI, HookContext, ToolCall

PROTECTED = ("uv.lock", ".env", ".env.*", "*.env", ".git", "node_modules")


def register(api: HookAPI) -> None:
    @api.on("tool_call")
    async def protect(event: ToolCall, ctx: HookContext) -> Block | None:
        changed = [glob for glob in PROTECTED if event.effects.writes(glob) or event.effects.deletes(glob)]
        return Block(f"{changed[0]} is protected") if changed else None
