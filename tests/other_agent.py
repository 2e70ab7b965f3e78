"""Another agent, which runs the installed command at each of its events."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.server import client
from agent_hooks.server.stub import config_of, stub_text, write_stub
from running import Command
from support import PATIENCE, approve

BRIDGE = open_bridge("claude-code")
CALL = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "1"}


class OtherAgent:
    """Another agent in a project: `agent("PreToolUse", payload)` runs the installed command, and returns the answer."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.environment = {**os.environ, "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(command.project)}
        self.stub = write_stub(BRIDGE)
        self.write_stub()

    def run(self, event: str, text: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Run the installed command with this payload."""
        if self.command.trusted:
            approve(self.command.project)
        return subprocess.run(
            [sys.executable, "-I", "-S", self.stub, event],
            input=text.encode() if isinstance(text, str) else text,
            capture_output="stdout" not in options,
            timeout=60,
            env=self.environment,
            cwd=self.command.project,
            check=False,
            **options,
        )

    def __call__(self, name: str = "PreToolUse", **fields: Any) -> Any:
        """Return the answer to an event, by default a call of Bash."""
        given = {**(CALL if name == "PreToolUse" else {}), "hook_event_name": name, "session_id": "s", **fields}
        done = self.run(name, json.dumps(given))
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(b"\n") == 1
        return json.loads(done.stdout)

    def write_stub(self, **changes: Any) -> None:
        """Change the configuration of the installed file until a server starts; by default the client is patient."""
        known = config_of(BRIDGE, patience=PATIENCE, start=PATIENCE)
        Path(self.stub).write_text(stub_text({**known, **changes}))  # type: ignore[typeddict-item]  # known to fit

    def server(self) -> dict[str, Any] | None:
        """Return the status of this project's server, or `None`."""
        servers = json.loads(self.command("serve", "--status", "--json").stdout)["servers"]
        return next((each for each in servers if each["project"] == str(self.command.project)), None)


def end_server(project: Path) -> None:
    """End the server of a project if there is one, also one that is stuck."""
    path = Path("/".join(client.place(config_of(BRIDGE), str(project))) + ".lock")
    if path.exists():
        with path.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if pid := lock.read():
                    os.kill(int(pid), signal.SIGKILL)
                else:  # a full disk
                    Command(project)("serve", "--stop")
        for each in path.parent.glob(f"{path.stem}.*"):
            each.unlink()
