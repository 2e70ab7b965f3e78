"""Events of other agents, as their hooks pass them to the command line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from running import Command

PAYLOADS = Path(__file__).parents[1] / "bridges"
BLOCK = """
    from agent_hooks import Block

    def register(api):
        @api.on("tool_call")
        def gate(event, ctx):
            return Block("stopped in the project")
"""


def payload(agent: str, name: str) -> Any:
    """Return a payload that the agent has sent."""
    return json.loads((PAYLOADS / f"{agent}.json").read_text())[name]


def test_a_directory_that_the_model_names_does_not_change_the_project(command: Command) -> None:
    """Codex reports the directory of a command as that of the event; the hooks of the project judge it all the same."""
    command.add_hook(BLOCK)
    given = {**payload("codex", "PreToolUse:workdir"), "cwd": str(command.project.parent)}
    done = command("bridge", "codex", "PreToolUse", stdin=json.dumps(given))
    assert "stopped in the project" in json.loads(done.stdout)["hookSpecificOutput"]["permissionDecisionReason"]


ASK_AND_TELL = """
    from agent_hooks import Ask

    def register(api):
        @api.on("tool_call")
        def gate(event, ctx):
            with open("judged", "a") as file:
                file.write(f"{event.tool_name}\\n")
            return Ask("really?")
"""


def as_copilot(command: Command, agent: str, event: str, given: Any, **environment: str) -> Any:
    """Return the answer to an event, as Copilot CLI runs an entry of the agent."""
    done = subprocess.run(
        command.line("bridge", agent, event),
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=command.project,
        env={**os.environ, "COPILOT_CLI": "1", "CLAUDE_PROJECT_DIR": str(command.project), **environment},
    )
    return json.loads(done.stdout)


def test_an_entry_of_claude_code_that_copilot_runs_is_judged_by_copilots_table(command: Command, home: Path) -> None:
    """The answer has the form of Copilot CLI, which knows no other for some of its words."""
    command.add_hook(ASK_AND_TELL)
    given = payload("copilot_as_claude", "PreToolUse:Bash")
    expected = {"permissionDecision": "ask", "permissionDecisionReason": "really?"}
    for started_by_claude in ({}, {"CLAUDECODE": "1"}):
        answer = as_copilot(command, "claude-code", "PreToolUse", given, **started_by_claude)
        assert answer["permissionDecision"] == expected["permissionDecision"]
        assert "really?" in answer["permissionDecisionReason"]
    assert (command.project / "judged").read_text() == "bash\nbash\n"


def test_an_event_is_judged_once_where_copilot_has_entries_of_its_own(command: Command, home: Path) -> None:
    """Claude Code's entry is silent then, and Copilot's own entry answers."""
    command.add_hook(ASK_AND_TELL)
    command("install", "copilot-cli", "--user")
    given = payload("copilot_as_claude", "PreToolUse:Bash")
    assert as_copilot(command, "claude-code", "PreToolUse", given) == {}
    own = as_copilot(command, "copilot-cli", "preToolUse", payload("copilot_cli", "preToolUse:bash"))
    assert own["permissionDecision"] == "ask"
    assert (command.project / "judged").read_text() == "bash\n"
    file = home / ".copilot/hooks/agent-hooks.json"
    file.write_text(file.read_text().replace('"preToolUse"', '"other"'))
    assert as_copilot(command, "claude-code", "PreToolUse", given)["permissionDecision"] == "ask"


def test_a_damaged_payload_is_refused_in_each_agents_words(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A payload that is cut off or of a wrong kind denies the call."""
    for name in ("COPILOT_CLI", "QWEN_PROJECT_DIR"):
        monkeypatch.setenv(name, str(command.project))
    for agent, event in (("codex", "PreToolUse"), ("qwen-code", "PreToolUse"), ("copilot-cli", "preToolUse")):
        for text in ("", "{", '{"tool_name": "Bash"', "[]", "null", '{"tool_name": 3}', "\x00"):
            said = command("bridge", agent, event, stdin=text).stdout
            assert "could not read the event" in said
            assert '"permissionDecision": "deny"' in said


def test_an_entry_of_claude_code_that_cursor_runs_is_judged_by_cursors_table(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cursor sends its own payloads to such an entry; a payload that cannot be read is refused in its words."""
    command.add_hook(BLOCK)
    monkeypatch.setenv("CURSOR_VERSION", "2.6.1")
    monkeypatch.setenv("CURSOR_PROJECT_DIR", str(command.project))
    given = json.dumps(payload("cursor", "preToolUse:Shell"))
    answer = json.loads(command("bridge", "claude-code", "PreToolUse", stdin=given).stdout)
    assert answer["permission"] == "deny"
    assert "stopped in the project" in answer["user_message"]
