"""Ask before dangerous shell commands; where nobody can be asked, the command does not run.

Try it:  agent-hooks run --hook examples/hooks/permission_gate.py '@bash sudo rm -rf build'

This reads the words of a command line, which is easy to get around (`r''m -rf`, `$X`, a script): it is a reminder for an
honest agent, not a wall against a clever one.
"""

import re
import shlex

from agent_hooks import Ask, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    @api.on("tool_call", tool="bash")
    async def gate(event: ToolCall, ctx: HookContext) -> Ask | None:
        command = event.input["command"]
        what = danger(command)
        return Ask(f"Run {what}?", command) if what else None


def danger(line: str) -> str | None:
    """Return what is dangerous about a command line, or `None`."""
    for command in re.split(r"[;&|\n(){}`]+", line):
        try:
            words = shlex.split(command)
        except ValueError:  # a quote without its end
            words = command.split()
        if "sudo" in words:
            return "sudo"
        flags = [word for word in words if word.startswith("-")]
        if "rm" in words and any(flag == "--recursive" or re.match(r"-\w*[rR]", flag) for flag in flags):
            return "a recursive rm"
        if {"chmod", "chown"} & set(words) and any(re.fullmatch(r"[0-7]?777", word) for word in words):
            return "rights for everybody"
    return None
