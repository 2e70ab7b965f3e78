"""The bridge to Copilot CLI, on payloads that the real one sent, in its own form and in that of Claude Code."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import AgentEnd, ToolOutput
from agent_hooks.bridges.base.happenings import (
    CallAsked,
    CallEnded,
    EventsReported,
    Happening,
    PermissionAsked,
    PromptGiven,
)
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.bridges.copilot_cli import CopilotAsClaude, CopilotCli
from support import examples

HERE = Path(__file__).parent
PAYLOADS: dict[str, Any] = json.loads((HERE / "copilot_cli.json").read_text())
CLAUDES: dict[str, Any] = json.loads((HERE / "copilot_as_claude.json").read_text())
COPILOT, AS_CLAUDE = CopilotCli(), CopilotAsClaude()


def decoded(name: str, **changes: Any) -> Happening:
    """Return the happening of the payload of that name."""
    return COPILOT.decode({**PAYLOADS[name], **changes}, name.partition(":")[0])


def answer(name: str, **verdict: Any) -> Any:
    """Return the answer that Copilot CLI gets to the payload of that name."""
    return json.loads(COPILOT.encode(decoded(name), Verdict(**verdict)).stdout)


def test_the_entry_names_the_event() -> None:
    """A payload does not, so without the name no payload is read."""
    with pytest.raises(BridgeError, match="names the event"):
        COPILOT.decode(PAYLOADS["preToolUse:bash"])


def test_copilot_cli_gets_answers_without_nested_objects() -> None:
    """Copilot CLI takes an answer without a level below it."""
    assert answer("preToolUse:bash", block="no", ask="?", context=("more",)) == {
        "permissionDecision": "deny",
        "permissionDecisionReason": "no",
        "additionalContext": "more",
    }
    assert answer("preToolUse:bash", ask="Really?") == {
        "permissionDecision": "ask",
        "permissionDecisionReason": "Really?",
    }
    assert answer("preToolUse:create", input={"path": "b", "content": "c"}) == {
        "modifiedArgs": {"path": "b", "file_text": "c"}
    }
    assert answer("postToolUse:bash", output=ToolOutput("new"), context=("more",)) == {
        "modifiedResult": {"resultType": "success", "textResultForLlm": "new"},
        "additionalContext": "more",
    }


def test_a_prompt_can_be_changed() -> None:
    """The model gets the new prompt in the place of the old one."""
    event = decoded("userPromptSubmitted")
    assert isinstance(event, PromptGiven)
    assert event.rewritable
    assert answer("userPromptSubmitted", prompt="new", context=("more",)) == {
        "modifiedPrompt": "new",
        "additionalContext": "more",
    }
    assert answer("userPromptSubmitted", block="no", prompt="new") == {"decision": "block", "reason": "no"}


def test_the_patch_of_the_tool_is_one_text() -> None:
    """Models with some names have `apply_patch`, whose input is no object; its files are parts."""
    call = decoded("preToolUse:apply_patch")
    assert isinstance(call, CallAsked)
    assert call.input["input"].startswith("*** Begin Patch")
    assert [(part.tool_name, part.input["path"]) for part in call.parts] == [("write", "a.txt")]
    assert answer("preToolUse:apply_patch", input={"input": "*** Begin"}) == {"modifiedArgs": "*** Begin"}
    denied = answer("preToolUse:apply_patch", input={"input": "x", "path": "y"})
    assert denied["permissionDecision"] == "deny"
    assert "takes one text only" in denied["permissionDecisionReason"]


def test_the_exit_code_of_a_command_is_read() -> None:
    """Copilot CLI reports any end of a command as a success, with the exit code in the last line."""
    failed, done = decoded("postToolUse:exit_3"), decoded("postToolUse:bash")
    assert isinstance(failed, CallEnded)
    assert isinstance(done, CallEnded)
    assert (failed.output.text, failed.output.is_error) == ("ORIG", True)
    assert (done.output.text, done.output.is_error) == ("ORIG-OUT", False)


@given(st.text(st.characters(exclude_categories=["Cs"])))
@examples(200)
def test_any_text_is_read_without_the_last_line_only(text: str) -> None:
    """The text of a command loses its last line, and no other text loses anything."""
    for end, expected in (("", f"{text}."), ("\n<shellId: 0 completed with exit code 7>", f"{text}.")):
        result = {"resultType": "success", "textResultForLlm": f"{text}.{end}"}
        event = decoded("postToolUse:bash", toolResult=result)
        assert isinstance(event, CallEnded)
        assert (event.output.text, event.output.is_error) == (expected, bool(end))


def test_a_failed_tool_is_a_failure() -> None:
    """A tool of a server that fails has an event of its own."""
    event = decoded("postToolUseFailure:probe-hkfail")
    assert isinstance(event, CallEnded)
    assert event.output.is_error
    assert event.output.text == "MCP server 'probe': FAILED hi"


def test_a_subagent_belongs_to_the_session_of_its_parent() -> None:
    """Its events have a session of their own, and name the session that began it."""
    for name in ("preToolUse:subagent", "userPromptSubmitted:subagent", "agentStop:subagent"):
        event = decoded(name)
        assert event.agent_id == PAYLOADS[name]["agentId"]
        assert event.parent_session == PAYLOADS[name]["parentAgentId"]


def test_the_end_of_a_subagent_is_reported_once() -> None:
    """Copilot CLI sends two events for it, and one of them is the end."""
    stop, other = decoded("agentStop:subagent"), decoded("subagentStop")
    assert isinstance(stop, EventsReported)
    assert isinstance(stop.events[0], AgentEnd)
    assert type(other) is Happening


def test_a_permission_can_be_settled() -> None:
    """Both words work without a person."""
    assert isinstance(decoded("permissionRequest:bash"), PermissionAsked)
    assert answer("permissionRequest:bash", allow=True) == {"behavior": "allow"}
    assert answer("permissionRequest:bash", block="no") == {"behavior": "deny", "message": "no"}


def test_entries_stand_in_the_own_file_of_the_person() -> None:
    """The hooks of a repository also run in places that have no agent-hooks, and would deny every call there."""
    assert COPILOT.settings_files({}) == {"user": "~/.copilot/hooks/agent-hooks.json"}
    assert COPILOT.settings_files({"COPILOT_HOME": "/c"}) == {"user": "/c/hooks/agent-hooks.json"}
    installed = COPILOT.install({}, ["agent-hooks", "bridge", "copilot-cli"], ["preToolUse"])
    (entry,) = installed["hooks"]["preToolUse"]
    assert installed["version"] == 1
    assert (entry["timeoutSec"], "matcher" in entry) == (600, False)
    assert entry["bash"].endswith("preToolUse || sh -c 'echo agent-hooks failed >&2; exit 2' || exit 2")


# ---- the entries of Claude Code, which Copilot CLI runs


@pytest.mark.parametrize("name", sorted(CLAUDES))
def test_an_entry_of_claude_code_gets_the_same_answers(name: str) -> None:
    """Copilot CLI takes its own answers there, and would ignore some of Claude Code's."""
    event = AS_CLAUDE.decode(CLAUDES[name], name.partition(":")[0])
    own = decoded(_own_name(name))
    verdict = Verdict(block="no") if isinstance(event, CallAsked) else Verdict(context=("more",), allow=True)
    assert type(event) is type(own)
    assert AS_CLAUDE.encode(event, verdict) == COPILOT.encode(own, verdict)


def _own_name(name: str) -> str:
    event, _, rest = name.partition(":")
    others = {"UserPromptSubmit": "userPromptSubmitted", "Stop": "agentStop"}
    own = others.get(event) or event[:1].lower() + event[1:]
    return f"{own}:{rest.lower()}" if rest else own


def test_a_call_of_claude_codes_form_is_the_same_call() -> None:
    """The tool has another name there, the input is the same."""
    call = AS_CLAUDE.decode(CLAUDES["PreToolUse:Bash"], "PreToolUse")
    ended = AS_CLAUDE.decode(CLAUDES["PostToolUse:Bash"], "PostToolUse")
    assert isinstance(call, CallAsked)
    assert isinstance(ended, CallEnded)
    assert (call.tool_name, call.input["command"]) == ("bash", "touch pwned; echo ORIG-OUT")
    assert (ended.output.text, ended.output.is_error) == ("ORIG-OUT", False)


# ---- bad input


@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_a_payload_without_a_field_is_an_error_with_a_text_or_is_read(name: str) -> None:
    """A payload of another version may lack any field; nothing but a `BridgeError` comes out."""
    odd: tuple[Any, ...] = (None, 3, [], "text", {})
    for key, value in product(PAYLOADS[name], odd):
        try:
            event = decoded(name, **{key: value})
        except BridgeError as exc:
            error: str | None = str(exc)
        else:
            error = None
            COPILOT.encode(event, Verdict(block="no", input={"command": "x"}))
        assert error is None or "Copilot CLI 1.0.102" in error


@pytest.mark.parametrize("tool", ["BASH", "bash ", "mcp__x__bash", "probe-bash"])
def test_an_odd_name_of_a_tool_is_a_tool_of_its_own(tool: str) -> None:
    """Gates see such a name as it is."""
    call = decoded("preToolUse:bash", toolName=tool)
    assert isinstance(call, CallAsked)
    assert call.native_name == tool
