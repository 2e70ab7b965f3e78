"""The codec of Gemini CLI, on payloads that the real one sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import AgentEnd, SessionEvent, ToolOutput
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, EventsReported, Happening, PromptGiven
from agent_hooks.bridges.base.installation import PROCESS
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.command_settings import OR_DENY
from agent_hooks.bridges.gemini_cli import GeminiCli

PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "gemini_cli.json").read_text())
GEMINI = GeminiCli()


def said(payload: dict[str, Any], **answer: Any) -> Any:
    """Return the reply that Gemini CLI gets."""
    return json.loads(GEMINI.encode(GEMINI.decode(payload), Verdict(**answer)).stdout)


@pytest.mark.parametrize(
    ("payload", "kind", "events"),
    [
        ("SessionStart:startup", EventsReported, ["start"]),
        ("SessionStart:resume", EventsReported, ["start"]),
        ("SessionEnd", EventsReported, ["shutdown"]),
        ("AfterAgent", EventsReported, [AgentEnd]),
        ("BeforeAgent", PromptGiven, []),
        ("BeforeTool:run_shell_command", CallAsked, []),
        ("AfterTool:run_shell_command", CallEnded, []),
        ("PreCompress", Happening, []),
        ("Notification", Happening, []),
    ],
)
def test_what_each_event_becomes(payload: str, kind: type[Happening], events: list[object]) -> None:
    """A payload has no id of a call and of a sub-agent."""
    happening = GEMINI.decode(PAYLOADS[payload])
    assert type(happening) is kind
    found = happening.events if isinstance(happening, EventsReported) else ()
    assert [each.reason if isinstance(each, SessionEvent) else type(each) for each in found] == events
    assert happening.session_id == PAYLOADS[payload]["session_id"]
    assert happening.agent_id == "main"
    assert happening.starts == payload.startswith("SessionStart")


def test_a_cleared_session_goes_on() -> None:
    """`/clear` ends a session and starts one in the same process."""
    assert type(GEMINI.decode({**PAYLOADS["SessionEnd"], "reason": "clear"})) is Happening
    start = GEMINI.decode({**PAYLOADS["SessionStart:startup"], "source": "clear"})
    assert isinstance(start, EventsReported)
    assert [each.reason for each in start.events if isinstance(each, SessionEvent)] == ["clear"]


@pytest.mark.parametrize(
    ("name", "theirs", "ours", "expected"),
    [
        ("run_shell_command", {"command": "ls"}, "bash", {"command": "ls"}),
        ("read_file", {"file_path": "/a", "start_line": 3}, "read", {"path": "/a", "start_line": 3}),
        ("write_file", {"file_path": "/a", "content": "x"}, "write", {"path": "/a", "content": "x"}),
        (
            "replace",
            {"file_path": "/a", "old_string": "b", "new_string": "c", "instruction": "i"},
            "edit",
            {"path": "/a", "oldText": "b", "newText": "c", "instruction": "i"},
        ),
        ("glob", {"pattern": "*", "dir_path": "/a"}, "find", {"pattern": "*", "path": "/a"}),
        ("grep_search", {"pattern": "x", "include_pattern": "*.py"}, "grep", {"pattern": "x", "glob": "*.py"}),
        ("list_directory", {"dir_path": "/a"}, "ls", {"path": "/a"}),
        ("mcp_probe_hkecho", {"file_path": "/a"}, "mcp_probe_hkecho", {"file_path": "/a"}),
    ],
)
def test_tools_are_called_as_ours_and_rewritten_in_their_words(
    name: str, theirs: dict[str, Any], ours: str, expected: dict[str, Any]
) -> None:
    """A rewrite replaces the arguments."""
    payload = {**PAYLOADS["BeforeTool:run_shell_command"], "tool_name": name, "tool_input": theirs}
    call = GEMINI.decode(payload)
    assert isinstance(call, CallAsked)
    assert (call.tool_name, call.input, call.tool_call_id) == (ours, expected, "")
    changed = said(payload, input=dict(call.input))
    assert changed == {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": theirs}}


def test_a_decision_has_the_words_of_gemini() -> None:
    """A question is in the message too, because the dialog shows only this."""
    payload = PAYLOADS["BeforeTool:run_shell_command"]
    assert said(payload, block="no") == {"decision": "deny", "reason": "no"}
    assert said(payload, ask="May it?\nIt writes.", messages=("a note",)) == {
        "decision": "ask",
        "reason": "May it?\nIt writes.\na note",
        "systemMessage": "May it?\nIt writes.\na note",
    }
    assert said(payload, block="no", ask="?", messages=("a note",)) == {
        "decision": "deny",
        "reason": "no",
        "systemMessage": "a note",
    }
    # The permission of Gemini's own rules is needed all the same.
    assert said(payload, allow=True) == {}
    assert said(PAYLOADS["BeforeAgent"], block="no") == {"decision": "deny", "reason": "no"}
    assert said(PAYLOADS["AfterAgent"], go_on="more", context=("and",)) == {"decision": "deny", "reason": "more\n\nand"}


@pytest.mark.parametrize(
    ("content", "text", "is_error"),
    [
        ("<untrusted_context>\nOutput: a\nb\nProcess Group PGID: 12\n</untrusted_context>", "a\nb", False),
        (
            "<untrusted_context>\nOutput: a\nExit Code: 3\nProcess Group PGID: 12\n</untrusted_context>",
            "a\nExit Code: 3",
            True,
        ),
        ("<untrusted_context>\nOutput: a\n</untrusted_context>", "Output: a", False),
        ([{"text": "<untrusted_context>\nECHO hi\n</untrusted_context>"}], "ECHO hi", False),
        ("plain", "plain", False),
    ],
)
def test_hooks_get_the_output_without_what_gemini_puts_around_it(content: Any, text: str, is_error: bool) -> None:
    """A command that fails has only a line in its output."""
    payload = {**PAYLOADS["AfterTool:run_shell_command"], "tool_response": {"llmContent": content}}
    call = GEMINI.decode(payload)
    assert isinstance(call, CallEnded)
    assert (call.output.text, call.output.is_error) == (text, is_error)
    assert said(payload, output=ToolOutput("new")) == {"decision": "deny", "reason": "new"}


@given(st.text(st.sampled_from("Output: \nProcess Group PGID: 1</untrusted_context>"), max_size=60))
def test_a_changed_result_hides_the_whole_old_one(text: str) -> None:
    """No text around a result brings the old one back."""
    payload = {**PAYLOADS["AfterTool:run_shell_command"], "tool_response": {"llmContent": text}}
    call = GEMINI.decode(payload)
    assert isinstance(call, CallEnded)
    assert said(payload, output=ToolOutput("***")) == {"decision": "deny", "reason": "***"}


def test_an_error_of_a_server_is_a_failure() -> None:
    """Its payload has the error beside the text."""
    call = GEMINI.decode(PAYLOADS["AfterTool:mcp_probe_hkfail"])
    assert isinstance(call, CallEnded)
    assert call.output.is_error


def test_an_entry_waits_as_long_as_hooks_may_take_and_tells_the_process() -> None:
    """Gemini's timeouts are milliseconds, and its own is a minute."""
    settings = GEMINI.install({}, ["/py", "x.py"], ["BeforeTool", "SessionStart"])
    [gate] = settings["hooks"]["BeforeTool"][0]["hooks"]
    assert gate["command"] == f"test -s x.py && {PROCESS}=$PPID /py x.py BeforeTool{OR_DENY}"
    assert (gate["timeout"], gate["name"], gate["type"]) == (600_000, "agent_hooks", "command")
    [start] = settings["hooks"]["SessionStart"][0]["hooks"]
    assert start["command"] == f"{PROCESS}=$PPID /py x.py SessionStart || exit 0"
    assert "timeout" not in start
    assert GEMINI.settings_files({"GEMINI_CLI_HOME": "/h"})["user"] == "/h/.gemini/settings.json"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"hooksConfig": {"enabled": False}}, "hooksConfig.enabled is off: Gemini CLI runs no hook"),
        ({"hooksConfig": {"disabled": ["agent_hooks"]}}, "hooksConfig.disabled has agent_hooks"),
        ({"hooksConfig": {"disabled": ["other"], "enabled": True}}, ""),
        ({"hooksConfig": []}, ""),
        ({"hooksConfig": {"disabled": 3}}, ""),
    ],
)
def test_a_setting_that_switches_hooks_off_is_told(settings: dict[str, Any], text: str) -> None:
    """Settings of a wrong form switch nothing off."""
    assert [each.text for each in GEMINI.hindrances("x", settings, "/p")] == [text][: bool(text)]


def test_which_agent_runs_us_and_whether_a_person_may_be_there() -> None:
    """In a CI, Gemini asks no person."""
    assert GEMINI.runs_here({"GEMINI_SESSION_ID": "s"})
    assert not GEMINI.runs_here({"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": "/w"})
    assert GEMINI.is_attended({})
    assert not GEMINI.is_attended({"CI": "true"})
    assert not GEMINI.is_attended({"GITHUB_ACTIONS": "true"})
