"""Approvals in another agent: the hooks and settings of a project count there after a person has approved them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_hooks.trust.policy import Trust
from other_agent import CALL, OtherAgent
from running import Command
from trust.approving import approve

GATE = """
    import pathlib
    from agent_hooks import Block
    pathlib.Path(__file__).with_name("ran").touch()
    def register(api):
        @api.on("tool_call", tool="bash")
        async def gate(event, ctx):
            return Block("not here")
"""
LOOSE = '{"guards": {"disabled": ["builtin:command-safety-guard"]}}'
DANGEROUS = {"command": "rm -rf /"}


@pytest.fixture
def untrusted(agent: OtherAgent) -> OtherAgent:
    """Give another agent in a project with a gate and loose settings, which no person has approved."""
    agent.command.trusted = False
    agent.command.add_hook(dedent(GATE), "gate.py")
    (agent.command.project / ".agent" / "settings.json").write_text(LOOSE)
    return agent


def verdict(answer: dict[str, dict[str, str]]) -> str:
    """Return the decision of an answer; `none` without one."""
    return answer.get("hookSpecificOutput", {}).get("permissionDecision", "none")


def by_command(command: Command, **fields: object) -> dict[str, dict[str, str]]:
    """Return the answer of a process of its own, without a server."""
    given = json.dumps({**CALL, "session_id": "s", **fields})
    answer: dict[str, dict[str, str]] = json.loads(command("bridge", "claude-code", stdin=given).stdout)
    return answer


def test_a_project_that_was_never_approved_is_left_out_and_named(untrusted: OtherAgent) -> None:
    """Neither its hook nor its settings count, with and without a server, and the person is told once a session."""
    started = json.dumps(untrusted("SessionStart", source="startup"))
    assert "agent-hooks trust" in started
    assert verdict(untrusted()) == "none"
    assert verdict(untrusted(tool_input=DANGEROUS)) == "deny"
    assert verdict(by_command(untrusted.command)) == "none"
    assert verdict(by_command(untrusted.command, tool_input=DANGEROUS)) == "deny"
    assert not (untrusted.command.project / ".agent" / "hooks" / "ran").exists()


def test_a_gate_that_was_emptied_judges_as_it_was_approved(untrusted: OtherAgent) -> None:
    """The agent, or a program that it runs, may edit or remove the files: the approved bytes count."""
    project = untrusted.command.project
    approve(project)
    assert verdict(untrusted()) == "deny"
    (project / ".agent" / "hooks" / "gate.py").write_text("def register(api): ...\n")
    assert verdict(untrusted()) == "deny"
    assert verdict(by_command(untrusted.command)) == "deny"
    shutil.rmtree(project / ".agent")
    assert verdict(untrusted()) == "deny"
    assert verdict(by_command(untrusted.command)) == "deny"


@pytest.mark.parametrize("damage", ["empty", "cut", "missing", "FIFO", "directory", "loop"])
def test_a_session_with_gates_denies_while_the_trust_store_is_damaged(untrusted: OtherAgent, damage: str) -> None:
    """Without a server too, and until the store is back. The denial names the command that rebuilds it."""
    approve(untrusted.command.project)
    harmless: dict[str, Any] = {"tool_name": "Read", "tool_input": {"file_path": "x"}}
    assert verdict(untrusted(**harmless)) == "none"
    store = Path(Trust().store().path)
    whole = store.read_bytes()
    store.unlink()
    match damage:
        case "empty":
            store.write_bytes(b"")
        case "cut":
            store.write_bytes(whole[: len(whole) // 2])
        case "FIFO":
            os.mkfifo(store)
        case "directory":
            store.mkdir()
        case "loop":
            store.symlink_to(store)
        case _:
            pass
    for answer in (untrusted(**harmless), untrusted(**harmless), by_command(untrusted.command, **harmless)):
        assert verdict(answer) == "deny"
        assert "rebuild it at a terminal: agent-hooks trust" in json.dumps(answer)
    if damage == "directory":
        store.rmdir()
    else:
        store.unlink(missing_ok=True)
    store.write_bytes(whole)
    assert verdict(untrusted(**harmless)) == "none"


def test_untrust_ends_the_hooks_of_a_session_that_runs(untrusted: OtherAgent, no_agent_around: None) -> None:
    """The next event is judged without them, by the server too."""
    approve(untrusted.command.project)
    assert verdict(untrusted()) == "deny"
    untrusted.command("untrust")
    assert verdict(untrusted()) == "none"
    assert verdict(by_command(untrusted.command)) == "none"
