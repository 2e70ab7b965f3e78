"""Ask before dangerous shell commands; where nobody can be asked, the command does not run.

Try it:  agent-hooks run --hook examples/hooks/permission_gate.py '@bash sudo rm -rf build'

This looks at the words of a command, which is easy to get around (`r''m -rf`, `$X`): it is a reminder for an honest
agent, not a wall against a clever one.
"""

import re

from agent_hooks import Ask, HookAPI, HookContext, ToolCall

DANGEROUS = {
    "a recursive rm": re.compile(r"\brm\s+(-\w*[rR]|--recursive)"),
    "sudo": re.compile(r"\bsudo\b"),
    "rights for everybody": re.compile(r"\b(chmod|chown)\b.*\b0?777\b"),
}


def register(api: HookAPI) -> None:
    @api.on("tool_call", tool="bash")
    async def gate(event: ToolCall, ctx: HookContext) -> Ask | None:
        command = event.input["command"]
        for what, pattern in DANGEROUS.items():
            if pattern.search(command):
                return Ask(f"Run {what}?", command)
        return None
