"""The demo of `make demo`: a hook file stops a real tool call of a running agent, and lets the next call pass.

The demo works in a temporary project.  The agent's model is the puppet, which follows the prompt, so no key is needed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HOOK = """\
from agent_hooks import Block, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    @api.on("tool_call")
    async def lock(event: ToolCall, ctx: HookContext) -> Block | None:
        if event.effects.writes("uv.lock") or event.effects.deletes("uv.lock"):
            return Block("only uv changes uv.lock")
        return None
"""
AGENT_HOOKS = (sys.executable, "-m", "agent_hooks")
LOCK = "anyio 1.0\n"
PROMPT = "@bash sed -i s/1.0/9.9/ uv.lock\n---\n@bash cat uv.lock"


def main() -> int:
    """Run the demo; return 0 when the hook stopped the call."""
    with tempfile.TemporaryDirectory(prefix="agent-hooks-demo-") as folder:
        project = Path(folder, "project")
        # The hooks of the user stay out of the demo.
        environment = {**os.environ, "AGENT_HOME": str(Path(folder, "home"))}
        project.mkdir()
        (project / "uv.lock").write_text(LOCK)
        (project / "lock.py").write_text(HOOK)

        show("The hook file lock.py:", HOOK)
        show("The prompt (the puppet model follows it, with real tools):", PROMPT)
        print("$ agent-hooks run --hook lock.py PROMPT", flush=True)
        line = [*AGENT_HOOKS, "run", "--hook", "lock.py", "--no-session", PROMPT]
        run = subprocess.run(line, cwd=project, env=environment)
        kept = (project / "uv.lock").read_text() == LOCK
        print("\nuv.lock", "is as it was: the hook stopped the sed." if kept else "WAS CHANGED: the hook failed!")
        return run.returncode or (0 if kept else 1)


def show(title: str, text: str) -> None:
    """Print an indented text under a title."""
    print(title)
    print("\n".join(f"    {line}".rstrip() for line in text.splitlines()), end="\n\n")


if __name__ == "__main__":
    sys.exit(main())
