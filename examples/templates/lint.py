"""lint: checks each Python file after an edit, and gives the model the findings."""

from __future__ import annotations

from agent_hooks import AddContext, HookAPI, HookContext, ToolResult

# Any program that fails, and prints its findings, when the file at the end of its arguments is not right.
LINTER = ["ruff", "check", "--quiet", "--output-format=concise"]


def register(api: HookAPI) -> None:
    """Subscribe the handlers."""

    @api.on("tool_result", tool=["edit", "write"])
    async def lint(event: ToolResult, ctx: HookContext) -> AddContext | None:
        """Add a text to what the model sees; the result itself stays as it is."""
        path = str(event.input.get("path", ""))
        if event.is_error or not path.endswith(".py"):
            return None
        done = await ctx.exec(LINTER[0], [*LINTER[1:], path], timeout=20)
        if done.code == 0:
            return None
        return AddContext(f"{LINTER[0]} has findings; mend them:\n{done.stdout or done.stderr}")
