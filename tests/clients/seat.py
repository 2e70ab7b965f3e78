"""One cell's surroundings: a client in a project with our hooks, and the questions of a case."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from agent_hooks.bridges import open_bridge
from clients.client import PATIENCE, Client, Run
from clients.script import Calls, Script, Shell, Step, Text, script
from support import ROOT, approve
from tmux import Tmux

EVERYWHERE = ROOT / "examples/hooks/everywhere.py"
MCP_SERVER = Path(__file__).parent / "mcp_server.py"


class Seat:
    """A client in a project that has everywhere.py and is a git repository; our hooks are installed by `ready`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.project = client.project
        bridge = open_bridge(client.name)
        self.limits: Mapping[str, str] = {str(power): reason for power, reason in bridge.limits.items()}
        self.gaps: Mapping[str, str] = {str(power): gap for power, gap in bridge.gaps.items()}
        subprocess.run(["git", "init", "--quiet"], cwd=self.project, check=True)

    def ready(self) -> None:
        """Bring everywhere.py into the project, approve it, and install our hooks into the client."""
        self.add_hook("everywhere.py", EVERYWHERE.read_text())
        self.trust()
        self.client.install()

    def add_hook(self, name: str, source: str) -> None:
        """Put a hook file into the project."""
        path = self.project / ".agent/hooks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))

    def trust(self) -> None:
        """Approve the project with any content."""
        approve(self.project)

    def run(
        self, *steps: Step, helpers: Mapping[str, Sequence[Step]] | None = None, tokens: int = 11, **options: Any
    ) -> Run:
        """Run the client without a person: the model plays these steps."""
        return self.client.run(script(*steps, helpers=helpers, tokens=tokens), **options)

    def shell(self, *commands: str, **options: Any) -> Run:
        """Run the client, whose model runs these commands one after another."""
        return self.run(*(Calls(Shell(command)) for command in commands), Text("done"), **options)

    def has(self, name: str) -> bool:
        """Return whether a file of the project is there."""
        return (self.project / name).exists()

    def told_of_block(self, reason: str) -> str:
        """Return the words about a blocked prompt that a headless run prints."""
        return reason if self.client.blocked is None else self.client.blocked

    def log(self) -> list[dict[str, Any]]:
        """Return the lines that everywhere.py wrote."""
        path = self.project / ".agent/everywhere.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def events(self) -> list[str]:
        """Return the names of the events that everywhere.py wrote."""
        return [line["event"] for line in self.log()]

    def offer_mcp(self) -> None:
        """Offer the tools of an MCP server."""
        self.client.add_mcp([sys.executable, "-I", str(MCP_SERVER)])

    @contextmanager
    def terminal(self, script: Script, *, automatic: bool = False) -> Iterator[Tmux]:
        """Open the client at a terminal."""
        with closing(Tmux(self.project, columns=120, rows=45)) as tmux:
            # A client takes seconds, and each look is a process.
            tmux.patience, tmux.pause = PATIENCE, 0.1
            self.client.open(tmux, script, automatic=automatic)
            yield tmux

    def prompt(self, tmux: Tmux, steps: Script, text: str) -> None:
        """Type a prompt, and press Enter now and then until the model is asked: a busy client loses the key."""
        before = len(steps.seen)
        tmux.enter(text)
        _press(
            tmux,
            "Enter",
            lambda screen: True,
            lambda screen: len(steps.seen) > before,
            entered=time.monotonic(),
            every=5,
        )

    def answer(self, tmux: Tmux, key: str) -> str:
        """Press a key until the question on the screen is gone, and return the question; an early key is lost."""
        assert self.client.screen
        asking = self.client.screen.asking
        question = tmux.sees(asking)
        _press(tmux, key, lambda screen: asking in screen, lambda screen: asking not in screen)
        return question


def _press(
    tmux: Tmux,
    key: str,
    needed: Callable[[str], bool],
    over: Callable[[str], bool],
    *,
    entered: float = 0.0,
    every: float = 0.7,
) -> None:
    """Press a key again and again, while the screen needs it, until something is over.

    `entered`: the time of an earlier press; `every`: the seconds between two.
    """
    pressed = entered

    def holds(screen: str) -> bool:
        nonlocal pressed
        if over(screen):
            return True
        if needed(screen) and time.monotonic() > pressed + every:
            tmux.press(*key.split())
            pressed = time.monotonic()
        return False

    tmux.until(holds, f"the end of what {key} is for")
