"""The directory of one cell, and the calls that an agent makes there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from chaos.cells import Cell
from chaos.hook_file import write_hooks

# Milliseconds that a handler gets.
DEADLINE = 1000
# Seconds after which a program cancels a call that would wait for ever, and any other call, which is wrong.
IMPATIENCE, PATIENCE = 2.0, 15.0


class Call(NamedTuple):
    """One tool call; `word`: the text that its tool writes down and returns."""

    id: str
    tool: str
    word: str


class Scene:
    """The files of one cell below `root`: a home with hooks and settings, a project, and the results."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.project = root / "project"
        # The words of the tools that ran.
        self.ran = root / "ran"
        # Made by the broken handler when it begins.
        self.began = root / "began"
        self.notes = root / "notes"
        # The results that reached the agent, a JSON object a line.
        self.results = root / "results"
        # The path of the resident server's files, without a suffix.
        self.server = root / "server"

    def write(self, cell: Cell) -> None:
        """Make the files."""
        write_hooks(cell, self.home / ".agent" / "hooks", self.began)
        settings = {"hookTimeout": DEADLINE, "toolCallTimeout": DEADLINE}
        (self.home / ".agent" / "settings.json").write_text(json.dumps(settings))
        self.project.mkdir()
        self.ran.touch()
        self.results.touch()
        self.notes.write_text("notes")

    def command(self, word: str) -> str:
        """Return the command that writes a word down and prints it."""
        return f"echo {word} | tee -a {self.ran}"

    def input(self, call: Call) -> dict[str, str]:
        """Return the input of a call, for the tools of the host."""
        return {"path": str(self.notes)} if call.tool == "read" else {"command": self.command(call.word)}

    def environment(self) -> dict[str, str]:
        """Return the variables of the agent."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH", "TMPDIR")}
        own = {
            "HOME": str(self.home),
            "AGENT_HOME": str(self.home / ".agent"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
        }
        return {**kept, **own}


def calls_of(cell: Cell) -> list[Call]:
    """Return the calls, in order.

    The first meets the fault.  Then come one that the sound hook forbids, one that the broken hook forbids, and two
    without harm, of this and of another tool.
    """
    judged = "forbidden" if cell.judges else "harmless"
    return [
        Call("trouble", "bash", f"trouble-{judged}"),
        Call("banned", "bash", "banned"),
        Call("again", "bash", f"again-{judged}"),
        Call("after", "bash", "after"),
        Call("other", "read", "notes"),
    ]
