"""Ask before dangerous shell commands; without a person, the command does not run.

Try it:  agent-hooks run --hook examples/hooks/permission_gate.py '@bash sudo rm -rf build'

This hook reads the words of a command line, which is easy to evade (`r''m -rf`, `$X`, a script): it is a reminder for an
honest agent, not a wall against a clever one.
"""

import re
import shlex

from agent_hooks import Ask, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    @api.on("tool_call", tool="bash")
    async def gate(event: ToolCall, ctx: HookContext) -> Ask | None:
        command = event.input["command"]
        risk = danger(command)
        return Ask(f"Run {risk}?", command) if risk else None


def danger(line: str) -> str | None:
    """Return the name of the danger in a command line, or `None`."""
    for command in re.split(r"[;&|\n(){}`]+", line):
        try:
            words = shlex.split(command)
        # A quote without its end.
        except ValueError:
            words = command.split()
        if "sudo" in words:
            return "sudo"
        flags = [word for word in words if word.startswith("-")]
        if "rm" in words and any(flag == "--recursive" or re.match(r"-\w*[rR]", flag) for flag in flags):
            return "a recursive rm"
        if {"chmod", "chown"} & set(words) and any(re.fullmatch(r"[0-7]?777", word) for word in words):
            return "rights for everybody"
    return None
