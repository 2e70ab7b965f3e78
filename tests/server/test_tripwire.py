"""The tripwire in the installed client, with the resident server and without one, and the command that lifts an alarm."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.server.stub import config_of, stub_text, write_stub
from cli.test_cli_unlock import typed
from other_agent import OtherAgent, end_server
from support import PATIENCE

RESULT = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "done", "tool_use_id": "unknown"}


def reason_of(agent: OtherAgent) -> str | None:
    """Return the reason with which a call is denied, `None` if it is not."""
    said = agent().get("hookSpecificOutput", {})
    return str(said["permissionDecisionReason"]) if said.get("permissionDecision") == "deny" else None


def raise_alarm(agent: OtherAgent) -> str:
    """Let a session start and a result come whose call was never judged; return the message to the person."""
    agent("SessionStart", source="startup")
    return str(agent("PostToolUse", **RESULT)["systemMessage"])


@pytest.mark.parametrize("is_resident", [True, False])
def test_a_person_lifts_an_alarm(agent: OtherAgent, is_resident: bool) -> None:
    """`doctor` names it, and the session goes on at once."""
    if not is_resident:
        agent.write_stub(serve=["/bin/false"])
    assert "agent-hooks doctor --clear-alarm" in raise_alarm(agent)
    reason = reason_of(agent)
    assert reason is not None
    assert "the tripwire has stopped this session" in reason
    assert "tripwire" in agent("UserPromptSubmit", prompt="go on")["reason"]
    end_server(agent.command.project)
    assert reason_of(agent) == reason
    found = json.loads(agent.command("doctor", "claude-code", "--json", code=1).stdout)["findings"]
    (text,) = [each["text"] for each in found if each["what"] == "tripwire"]
    assert "session s of claude-code" in text
    assert "lifted: session s" in typed(agent.command, "doctor", "--clear-alarm")
    assert reason_of(agent) is None
    assert "no session is stopped" in typed(agent.command, "doctor", "--clear-alarm")


def test_only_a_person_lifts_an_alarm(agent: OtherAgent, tmp_path: Path) -> None:
    """Neither a program nor an agent that has opened a terminal."""
    raise_alarm(agent)
    assert "terminal" in agent.command("doctor", "--clear-alarm", code=1).stderr
    claude = tmp_path / "claude"
    shutil.copy("/bin/bash", claude)
    seen = typed(agent.command, "doctor", "--clear-alarm", code=1, shell=[str(claude), "-c"])
    assert "claude (process" in seen
    assert reason_of(agent) is not None


def test_a_new_session_is_free(agent: OtherAgent) -> None:
    """The alarm is that of one session."""
    raise_alarm(agent)
    assert reason_of(agent) is not None
    agent("SessionStart", source="clear", session_id="another")
    assert agent(session_id="another") == {}


def test_a_server_that_is_killed_between_call_and_result_raises_no_alarm(agent: OtherAgent) -> None:
    """So does one after which each event has a process of its own."""
    agent("SessionStart", source="startup")
    assert agent(tool_use_id="a") == {}
    assert agent(tool_use_id="b") == {}
    end_server(agent.command.project)
    assert agent("PostToolUse", **{**RESULT, "tool_use_id": "a"}) == {}
    end_server(agent.command.project)
    agent.write_stub(serve=["/bin/false"])
    message = agent("PostToolUse", **{**RESULT, "tool_use_id": "b"})["systemMessage"]
    assert "no resident server can be started" in message
    assert "judged" not in message
    assert agent(tool_use_id="c") == {}


@pytest.mark.parametrize("is_resident", [True, False])
def test_an_alarm_stops_the_sub_agents_of_its_session(agent: OtherAgent, is_resident: bool) -> None:
    """A sub-agent of Copilot CLI has a session of its own, and each of its events names the session of the person."""
    copilot = open_bridge("copilot-cli")
    known = config_of(copilot, patience=PATIENCE, start=PATIENCE)
    agent.stub = write_stub(copilot)
    Path(agent.stub).write_text(stub_text(known if is_resident else {**known, "serve": ["/bin/false"]}))
    agent.environment |= {"COPILOT_CLI": "1", "COPILOT_PROJECT_DIR": str(agent.command.project)}

    def answer(event: str, **fields: object) -> dict[str, object]:
        return dict(json.loads(agent.run(event, json.dumps({"sessionId": "person", **fields})).stdout))

    call = {"toolName": "bash", "toolArgs": {"command": "ls"}}
    inner = {"sessionId": "inner", "agentId": "inner", "parentAgentId": "person"}
    answer("sessionStart", source="new")
    assert answer("preToolUse", **{**call, **inner}) == {}
    answer("postToolUse", toolName="create", toolArgs={"path": "x"}, toolResult={"textResultForLlm": "x"})
    end_server(agent.command.project)
    assert answer("preToolUse", **call)["permissionDecision"] == "deny"
    assert answer("preToolUse", **{**call, **inner})["permissionDecision"] == "deny"
