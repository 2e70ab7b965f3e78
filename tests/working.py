"""An agent at work in a repository, without a model: it gets prompts and calls tools, and checkpoints are made."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from agent_hooks import HookRunner, checkpoints
from agent_hooks.checkpoints import Undone, keeping
from agent_hooks.checkpoints import git as asking
from agent_hooks.dispatch.context import Surroundings
from agent_hooks.host.tools import builtin_tools
from agent_hooks.pipeline import saving
from agent_hooks.pipeline.order import call_tool
from agent_hooks.records import Records
from agent_hooks.testing import ScriptedUI
from support import PATIENCE

# A busy machine takes long for what is quick elsewhere.
keeping.BEFORE_A_CALL = PATIENCE
asking.ASKING = PATIENCE / 4

GIT = ["git", "-c", "user.name=p", "-c", "user.email=p@example.com"]


def git(top: Path, *args: str) -> str:
    """Run git as the person does."""
    done = subprocess.run([*GIT, *args], cwd=top, capture_output=True, text=True, check=True)
    return done.stdout


def files(top: Path) -> dict[str, str]:
    """Return the texts of all files of a working tree, by path."""
    return {
        str(path.relative_to(top)): path.read_text()
        for path in sorted(top.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(top).parts
    }


class Agent:
    """An agent in a working tree: `await agent.turn("do it", "sed -i s/a/b/ file")`."""

    def __init__(self, top: Path, session: str = "one", client: str = "pi", records: Records | None = None) -> None:
        self.top = top
        self.ui = ScriptedUI()
        self.runner = HookRunner([], cwd=top, session_id=session, ui=self.ui, records=records)
        saving.keep_turns(self.runner.engine, client)
        self.tools = {tool.name: tool for tool in builtin_tools(cwd=str(top))}
        self.entries = 0

    @property
    def place(self) -> Surroundings:
        """The place of its calls."""
        return self.runner.engine.surroundings

    async def begin(self, prompt: str = "do it") -> None:
        """Get a prompt."""
        self.entries += 2
        await saving.begin_turn(self.runner.engine, prompt, self.place, self.entries)

    async def call(self, tool: str, **input: Any) -> None:
        """Call a tool."""
        done = await call_tool(self.tools[tool], f"{tool}-{time.monotonic_ns()}", input, runner=self.runner)
        assert not done.is_error, done.text

    async def shell(self, command: str) -> None:
        """Run a shell command."""
        await self.call("bash", command=command)

    async def end(self) -> None:
        """End the turn."""
        await saving.end_turn(self.runner.engine, self.place)

    async def turn(self, prompt: str, *commands: str) -> None:
        """Work on a prompt with some shell commands."""
        await self.begin(prompt)
        for command in commands:
            await self.shell(command)
        await self.end()

    @property
    def warnings(self) -> list[str]:
        """The warnings that the person has had."""
        return [asked.title for asked in self.ui.asked if asked.method == "notify"]


def repository(top: Path) -> Path:
    """Make a repository with a tracked, a changed, an untracked and an ignored file."""
    git(top, "init", "-q")
    (top / ".gitignore").write_text("ignored\n")
    (top / "tracked").write_text("1\n2\n3\n")
    (top / "src").mkdir()
    (top / "src" / "a.py").write_text("a = 1\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    (top / "tracked").write_text("1\n2\n3\nmine, not committed\n")
    (top / "untracked").write_text("never added\n")
    (top / "ignored").write_text("secret\n")
    return top


async def undo(top: Path, turns: int = 1) -> Undone:
    """Take the last turns back."""
    return await checkpoints.take_back(top, await checkpoints.plan_undo(top, turns))
