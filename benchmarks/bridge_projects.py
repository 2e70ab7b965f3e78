"""A project that another agent works in, and the resident server of its hooks, which that agent's first event starts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.installs.generated import stub_path
from agent_hooks.server.stub import HELLO
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.repository import project_key
from agent_hooks.trust.store import TrustStore
from benchmarks.harness import Side

AGENT = "claude-code"
EVENT = "PreToolUse"
# The sections that count in the person's own settings only.
PERSONAL = ("records", "trust")
BASE = [sys.executable, "-I", "-S", "-c", "pass"]


class Project:
    """A project of its own, which its person has approved, with a home of its own, and an event that happens in it."""

    def __init__(self, folder: Path, settings: dict[str, Any], hook: str | None = None) -> None:
        self.folder = folder
        self.environment = {
            "HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "CLAUDECODE": "1",
            "CLAUDE_PROJECT_DIR": str(folder),
            "CLAUDE_PID": str(os.getpid()),
        }
        self.home = folder / "home" / ".agent"
        self.home.mkdir(parents=True)
        personal = {key: each for key, each in settings.items() if key in PERSONAL}
        (self.home / "settings.json").write_text(json.dumps(personal))
        sources = folder / ".agent"
        (sources / "hooks").mkdir(parents=True)
        (sources / "settings.json").write_text(json.dumps({k: v for k, v in settings.items() if k not in PERSONAL}))
        if hook is not None:
            (sources / "hooks" / "hook.py").write_text(hook)
        TrustStore(str(self.home)).approve(project_key(str(folder)), read_set(str(folder)))
        self.payload = folder / "payload.json"
        payload = {
            "session_id": "8e1fd0a2-4a53-4a73-a1b4-5b8d2b0d3a7e",
            "transcript_path": str(folder / "transcript.jsonl"),
            "cwd": str(folder),
            "permission_mode": "default",
            "hook_event_name": EVENT,
            "tool_name": "Bash",
            "tool_input": {"command": "git status --short && ls -la src", "description": "Show the changes"},
            "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
        }
        self.payload.write_text(json.dumps(payload))
        asks = {"do": "answer", "agent": AGENT, "event": EVENT, "environment": self.environment}
        self.request = _line([{**json.loads(HELLO), **asks}, payload])

    def run(self, command: list[str], stdout: int = subprocess.DEVNULL) -> bytes:
        """Run a command with the event as its input, and return its output."""
        with self.payload.open("rb") as payload:
            done = subprocess.run(
                command, stdin=payload, stdout=stdout, env=self.environment, cwd=self.folder, check=True
            )
        return done.stdout

    def side(self, command: list[str], answer: bytes) -> Side:
        """Return the side that runs a command for each event; the command has to print `answer`."""
        assert (output := self.run(command, subprocess.PIPE)) == answer, output

        async def side(loops: int) -> float:
            begin = perf_counter()
            for _ in range(loops):
                self.run(command)
            return (perf_counter() - begin) / loops

        return side

    @property
    def ask(self) -> list[str]:
        """The command that the other agent runs, once `served` has started the server."""
        return [sys.executable, "-I", "-S", str(stub_path(open_bridge(AGENT), self.home)), EVENT]


class Resident:
    """A running resident server."""

    def __init__(self, project: Project, path: str, pid: int) -> None:
        self.project = project
        self.path = path
        self.pid = pid


@contextmanager
def served(project: Project) -> Iterator[Resident]:
    """Write the other agent's command, let the first event start a server, and end the server."""
    imports = "from agent_hooks.bridges import open_bridge; from agent_hooks.server.stub import write_stub"
    project.run([sys.executable, "-c", f"{imports}; write_stub(open_bridge({AGENT!r}))"])
    assert (output := project.run(project.ask, subprocess.PIPE)).startswith(b"{"), output
    server = server_of(project)
    try:
        yield server
    finally:
        end(server)


def server_of(project: Project) -> Resident:
    """Return the running server of a project."""
    status = project.run([sys.executable, "-m", "agent_hooks", "serve", "--status", "--json"], subprocess.PIPE)
    mine = next(each for each in json.loads(status)["servers"] if each["project"] == str(project.folder))
    return Resident(project, f"{mine['path']}.socket", mine["pid"])


def end(server: Resident) -> None:
    """End a server, and remove its files."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server.path)
        # A server stops by a signal only.
        os.kill(server.pid, signal.SIGTERM)
        # A server that ends resets a connection whose greeting nobody has read.
        with suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
    path = Path(server.path)
    for left in path.parent.glob(f"{path.stem}.*"):
        # The server removes some of them itself, at the same time.
        left.unlink(missing_ok=True)


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
