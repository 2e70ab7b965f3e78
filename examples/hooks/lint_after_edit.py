r"""Check a file after each edit and write; the model gets the findings, so it mends them at once.

Try it:  agent-hooks run --hook examples/hooks/lint_after_edit.py '@write {"path": "x.py", "content": "import os\n"}'

It needs the linter on your PATH: ruff for Python, shellcheck for shell scripts.  Change LINTERS for others.
"""

import os
import shutil

from agent_hooks import AddContext, HookAPI, HookContext, ToolResult

LINTERS = {
    ".py": ["ruff", "check", "--quiet", "--output-format=concise"],
    ".sh": ["shellcheck", "--format=gcc"],
}
# The characters of the findings that the model gets.
SHOWN = 2000


def register(api: HookAPI) -> None:
    missing: set[str] = set()

    @api.on("tool_result", tool=["edit", "write"])
    async def lint(event: ToolResult, ctx: HookContext) -> AddContext | None:
        path = os.path.join(ctx.cwd, str(event.input.get("path", "")))
        command = LINTERS.get(os.path.splitext(path)[1])
        if event.is_error or command is None:
            return None
        if shutil.which(command[0]) is None:
            if command[0] not in missing:
                missing.add(command[0])
                ctx.ui.notify(f"{command[0]} is not installed, so edits are not checked", "warning")
            return None
        done = await ctx.exec(command[0], [*command[1:], path], timeout=20)
        if done.code == 0:
            return None
        findings = f"{done.stdout}\n{done.stderr}".strip()[:SHOWN]
        return AddContext(f"{command[0]} has findings in {event.input['path']}; mend them:\n{findings}")
