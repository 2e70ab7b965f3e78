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
    @api.on("tool_call", tool="bash")
    async def no_rm(event: ToolCall, ctx: HookContext) -> Block | None:
        if "rm -rf" in event.input["command"]:
            return Block("deleting needs a person")
        return None
"""
AGENT_HOOKS = (sys.executable, "-m", "agent_hooks")
PROMPT = "@bash rm -rf build\n---\n@bash ls build"


def main() -> int:
    """Run the demo; return 0 when the hook stopped the call."""
    with tempfile.TemporaryDirectory(prefix="agent-hooks-demo-") as folder:
        project = Path(folder, "project")
        # The approval goes into an agent home of the demo, so the person's own store stays unchanged.
        environment = {**os.environ, "AGENT_HOME": str(Path(folder, "home"))}
        (project / "build").mkdir(parents=True)
        (project / "build" / "release.tar").write_text("three days of work\n")
        hook = project / ".agent" / "hooks" / "no_rm.py"
        hook.parent.mkdir(parents=True)
        hook.write_text(HOOK)

        show("The hook file .agent/hooks/no_rm.py:", HOOK)
        show("The prompt (the puppet model follows it, with real tools):", PROMPT)
        show("A project's hooks run after a person has read and approved them:", "$ agent-hooks trust --yes")
        subprocess.run([*AGENT_HOOKS, "trust", "--yes"], cwd=project, check=True, capture_output=True, env=environment)
        print("$ agent-hooks run PROMPT", flush=True)
        run = subprocess.run([*AGENT_HOOKS, "run", "--no-session", PROMPT], cwd=project, env=environment)
        saved = (project / "build" / "release.tar").is_file()
        print("\nbuild/release.tar is", "still there: the hook stopped the rm." if saved else "GONE: the hook failed!")
        return run.returncode or (0 if saved else 1)


def show(title: str, text: str) -> None:
    """Print an indented text under a title."""
    print(title)
    print("\n".join(f"    {line}".rstrip() for line in text.splitlines()), end="\n\n")


if __name__ == "__main__":
    sys.exit(main())
