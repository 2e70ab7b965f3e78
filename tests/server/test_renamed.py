"""A project directory that is renamed while an agent works in it: its gates stay, or every call is denied."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from other_agent import CALL, OtherAgent
from running import Command

GATE = """
def register(api):
    @api.on("tool_call")
    def gate(event, ctx):
        if "deploy" in event.input.get("command", ""):
            return {"block": True, "reason": "not today"}
"""


def ask(agent: OtherAgent, cwd: Path, command: str) -> Any:
    """Return the answer to a call in a directory, by an agent that was started in the project."""
    payload = {**CALL, "session_id": "s", "cwd": str(cwd), "tool_input": {"command": command}}
    done = subprocess.run(
        [sys.executable, "-I", "-S", agent.stub, "PreToolUse"],
        input=json.dumps(payload).encode(),
        capture_output=True,
        timeout=60,
        env=agent.environment,
        cwd=cwd if cwd.exists() else None,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def decision(said: Any) -> str:
    """Return the decision about a call, `pass` without one."""
    return str(said.get("hookSpecificOutput", {}).get("permissionDecision", "pass"))


@pytest.mark.parametrize("approved", ["once", "always"])
@pytest.mark.parametrize("git", [False, True])
@pytest.mark.parametrize("told", ["old", "new"])
def test_a_renamed_project_keeps_its_gates_or_denies(agent: OtherAgent, approved: str, git: bool, told: str) -> None:
    """The agent was started at the former path, and may report either as its working directory."""
    command = agent.command
    old, new = command.project, command.project.with_name("renamed")
    if git:
        subprocess.run(["git", "init", "-q"], cwd=old, check=True)
    command.trusted = False
    command.add_hook(GATE)
    command("trust", "--yes", *(["--always"] if approved == "always" else []))
    assert decision(ask(agent, old, "make deploy")) == "deny"
    assert decision(ask(agent, old, "make test")) == "pass"
    os.rename(old, new)
    try:
        for _ in range(2):
            assert decision(ask(agent, new if told == "new" else old, "make deploy")) == "deny"
    finally:
        os.rename(new, old)
    assert decision(ask(agent, old, "make deploy")) == "deny"
    assert decision(ask(agent, old, "make test")) == "pass"


def test_the_host_keeps_the_gates_of_a_renamed_project(command: Command) -> None:
    """The calls of the next prompt are judged by its gates, or denied because they are gone."""
    command.add_hook(GATE)
    rpc = command.rpc("--no-session")
    rpc.send("prompt", message="@bash make deploy")
    rpc.expect("run_end")
    assert [each["blockReason"] for each in rpc.all("after_tool_call")] == ["not today"]
    new = command.project.with_name("renamed")
    os.rename(command.project, new)
    try:
        rpc.send("prompt", message="@bash make deploy")
        rpc.expect("run_end")
        first, second = (each["blockReason"] for each in rpc.all("after_tool_call"))
        assert first == "not today"
        assert second == "not today" or "its directory was renamed or removed" in second
        rpc.end()
    finally:
        os.rename(new, command.project)
