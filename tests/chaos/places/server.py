"""Another agent with the resident server: the generated client is run at each event, as Claude Code does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.server import client
from agent_hooks.server.stub import bytecode_of, config_of, stub_text
from chaos.cells import Cell
from chaos.scene import Call, Scene, calls_of

BRIDGE = open_bridge("claude-code")
# Seconds in which the client must get an answer; those of the real ones are minutes.
LIMIT = 5.0
PATIENCE = 2.0


class _Agent:
    """Another agent: it runs its tools itself, unless a hook denies it."""

    def __init__(self, cell: Cell, scene: Scene) -> None:
        self._scene = scene
        self._ran = scene.ran.open("a")
        self._results = scene.results.open("a")
        self._stub = scene.root / "stub.py"
        config = config_of(BRIDGE, patience=PATIENCE)
        config["events"] = {name: (LIMIT, refusal) for name, (_, refusal) in config["events"].items()}
        scene.server.write_text("/".join(client.place(config, str(scene.project))))
        text = stub_text(config).encode()
        self._stub.write_bytes(text)
        self._stub.with_suffix(".pyc").write_bytes(bytecode_of(text, str(self._stub)))

    def call(self, call: Call) -> None:
        """Ask about a call, run it unless it is denied, and report its result; the last call is another session's."""
        session = "other" if call.id == "other" else "s"
        name, given = ("Read", {"file_path": str(self._scene.notes)})
        if call.tool == "bash":
            name, given = "Bash", {"command": self._scene.command(call.word)}
        about = {"session_id": session, "tool_name": name, "tool_use_id": call.id, "cwd": str(self._scene.project)}
        decision = self._event("PreToolUse", **about, tool_input=given).get("hookSpecificOutput", {})
        if decision.get("permissionDecision") in ("deny", "ask"):
            self._note(call, decision["permissionDecisionReason"], True)
            return
        given = decision.get("updatedInput", given)
        word = call.word
        if call.tool == "bash":
            word = given["command"].split()[1]
            self._ran.write(f"{word}\n")
            self._ran.flush()
        response = {"stdout": word, "stderr": "", "interrupted": False}
        answer = self._event("PostToolUse", **about, tool_input=given, tool_response=response)
        changed = answer.get("hookSpecificOutput", {}).get("updatedToolOutput", response)
        self._note(call, changed["stdout"], False)

    def _event(self, event: str, **payload: Any) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(self._stub), event],
            input=json.dumps({"hook_event_name": event, **payload}).encode(),
            stdout=subprocess.PIPE,
            env={**os.environ, "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(self._scene.project)},
            cwd=self._scene.project,
            check=True,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def _note(self, call: Call, text: str, error: bool) -> None:
        self._put({"id": call.id, "text": text, "error": error, "server": self._server()})

    def _server(self) -> str:
        """Return the process id of the server, an empty text without one."""
        lock = Path(f"{self._scene.server.read_text()}.lock")
        return lock.read_text().strip() if lock.exists() else ""

    def _put(self, line: dict[str, Any]) -> None:
        self._results.write(f"{json.dumps(line)}\n")
        self._results.flush()

    def end(self) -> None:
        """Say that all calls are made."""
        self._put({"end": True})


def run(cell: Cell, scene: Scene) -> None:
    """Make the calls."""
    agent = _Agent(cell, scene)
    for call in calls_of(cell):
        agent.call(call)
    agent.end()
