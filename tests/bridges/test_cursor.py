"""The bridge to Cursor, on payloads made by hand from the wire shapes of its SDK: no real Cursor has sent them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_hooks import AgentEnd, ToolOutput
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, EventsReported
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.cursor import Cursor, CursorAsClaude
from agent_hooks.bridges.patch_text import deletion

PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "cursor.json").read_text())
CURSOR, AS_CLAUDE = Cursor(), CursorAsClaude()


def answer(name: str, **verdict: Any) -> Any:
    """Return the answer that Cursor gets to the payload of that name."""
    return json.loads(CURSOR.encode(CURSOR.decode(PAYLOADS[name]), Verdict(**verdict)).stdout)


def call(name: str) -> CallAsked:
    """Return the call of the payload of that name."""
    event = CURSOR.decode(PAYLOADS[name])
    assert isinstance(event, CallAsked)
    return event


def test_the_bridge_says_that_it_is_from_documents() -> None:
    """No run of Cursor has tried it."""
    assert CURSOR.is_untried


def test_a_question_is_a_denial() -> None:
    """Cursor takes questions at other events only."""
    for verdict in ({"block": "no"}, {"ask": "no"}, {"block": "no", "allow": True}):
        assert answer("preToolUse:Shell", **verdict) == {"permission": "deny", "user_message": "no"}
    assert answer("preToolUse:Shell", allow=True) == {}


def test_a_rewrite_has_only_arguments_that_cursor_takes() -> None:
    """Cursor keeps the old value of any other argument, so such a rewrite is a denial with the new call."""
    given = PAYLOADS["preToolUse:Shell"]["tool_input"]
    assert answer("preToolUse:Shell", input={**given, "command": "ls"}) == {"updated_input": {**given, "command": "ls"}}
    for name, changed in (
        ("preToolUse:Shell", {**given, "timeout": 5}),
        ("preToolUse:Shell", {"command": "ls"}),
        ("preToolUse:Write", {"path": "/w/proj/a.txt", "content": "two\n"}),
    ):
        denied = answer(name, input=changed)
        assert denied["permission"] == "deny"
        assert "call this instead" in denied["user_message"]
    assert answer("preToolUse:MCP", input={"text": "new"}) == {"updated_input": {"text": "new"}}


def test_only_the_result_of_a_servers_tool_is_replaced() -> None:
    """The text of any other changed result comes beside the result."""
    assert answer("postToolUse:MCP", output=ToolOutput("new")) == {"updated_mcp_tool_output": "new"}
    assert answer("postToolUse:Shell", output=ToolOutput("new")) == {"additional_context": "new"}
    assert {"replace", "redact"} <= CURSOR.limits.keys()


def test_tools_have_our_names_and_arguments() -> None:
    """A deleted file is a part, and a shell may be typed into."""
    assert (call("preToolUse:Shell").tool_name, call("preToolUse:Shell").stays_open) == ("bash", True)
    assert call("preToolUse:Write").input == {"path": "/w/proj/a.txt", "content": "one\n"}
    assert call("preToolUse:Delete").parts == deletion("/w/proj/a.txt")


def test_a_failed_tool_is_a_failure() -> None:
    """Cursor has an event of its own for it."""
    event = CURSOR.decode(PAYLOADS["postToolUseFailure:Shell"])
    assert isinstance(event, CallEnded)
    assert (event.output.is_error, event.output.text) == (True, "Command failed with exit code 3")
    assert event.duration_ms == 9


def test_a_stop_has_a_count() -> None:
    """Cursor counts how often hooks kept it going."""
    for name, times in (("stop", 0), ("stop:continued", 2)):
        event = CURSOR.decode(PAYLOADS[name])
        assert isinstance(event, EventsReported)
        (end,) = event.events
        assert isinstance(end, AgentEnd)
        assert end.continued == times
    assert answer("stop", go_on="more", context=("text",)) == {"followup_message": "more\n\ntext"}


def test_a_prompt_is_stopped_by_continue() -> None:
    """The reason is for the person."""
    assert answer("beforeSubmitPrompt", block="no") == {"continue": False, "user_message": "no"}


def test_a_failure_of_the_command_denies() -> None:
    """An entry of a gate says so in two ways."""
    installed = CURSOR.install({}, ["agent-hooks", "bridge", "cursor"], ["preToolUse", "stop"])
    (gate,), (stop,) = installed["hooks"]["preToolUse"], installed["hooks"]["stop"]
    assert gate["failClosed"]
    assert gate["command"].endswith("|| sh -c 'echo agent-hooks failed >&2; exit 2' || exit 2")
    assert "failClosed" not in stop
    assert installed["version"] == 1


def test_an_entry_of_claude_code_gets_cursors_answers() -> None:
    """Cursor gives such an entry its own payloads, whose events have other names than the entry."""
    event = AS_CLAUDE.decode_as("PreToolUse", PAYLOADS["preToolUse:Shell"])
    assert AS_CLAUDE.encode(event, Verdict(block="no")) == CURSOR.encode(event, Verdict(block="no"))
    assert json.loads(AS_CLAUDE.refuse("PreToolUse", "broken").stdout)["permission"] == "deny"
    assert json.loads(AS_CLAUDE.refuse("UserPromptSubmit", "broken").stdout)["continue"] is False
    assert json.loads(AS_CLAUDE.refuse("Stop", "broken").stdout) == {}
    assert AS_CLAUDE.knows(PAYLOADS["preToolUse:Shell"])
    assert not AS_CLAUDE.knows({"hook_event_name": "PreToolUse"})
