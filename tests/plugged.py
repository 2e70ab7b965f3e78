"""An agent that has loaded a plugin: Node with the generated file, in a project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from agent_hooks.bridges import open_bridge
from agent_hooks.server.plugin_file import write_plugin
from running import Command
from support import approve

DRIVER = Path(__file__).parent / "plugin_driver.mjs"


class Plugged:
    """An agent with a plugin: `agent.call("tool_call", event)` returns the outcome of a hook, see `plugin_driver.mjs`."""

    def __init__(self, command: Command, name: str = "pi") -> None:
        self.command = command
        self.bridge = open_bridge(name)
        approve(command.project)
        self.plugin = Path(write_plugin(self.bridge))
        self._process: subprocess.Popen[str] | None = None

    def change(self, before: str, after: str) -> None:
        """Change the text of the plugin, before the agent loads it."""
        text = self.plugin.read_text()
        assert before in text, before
        self.plugin.write_text(text.replace(before, after, 1))

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            ["node", str(DRIVER), self.plugin.as_uri(), self.bridge.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
            cwd=self.command.project,
            env=os.environ,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.communicate(timeout=60)

    def start(self, hook: str, event: dict[str, Any], output: Any = None, **more: Any) -> None:
        """Call a hook without waiting for its outcome."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"hook": hook, "event": event, "output": output, **more}) + "\n")
        self._process.stdin.flush()

    def outcome(self) -> dict[str, Any]:
        """Wait for the outcome of the call."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the agent has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def call(self, hook: str, event: dict[str, Any], output: Any = None, **more: Any) -> dict[str, Any]:
        """Call a hook and return its outcome."""
        self.start(hook, event, output, **more)
        return self.outcome()

    def bash(self, command: str = "ls", **more: Any) -> dict[str, Any]:
        """Let the model of pi call its shell."""
        return self.call("tool_call", {"toolName": "bash", "toolCallId": "1", "input": {"command": command}}, **more)
