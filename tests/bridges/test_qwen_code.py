"""The bridge to Qwen Code, on payloads that the real one sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import ToolOutput
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, PermissionAsked, PromptGiven
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.qwen_code import QwenCode
from support import examples

PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "qwen_code.json").read_text())
QWEN = QwenCode()


def answer(name: str, **verdict: Any) -> Any:
    """Return the answer that Qwen Code gets to the payload of that name."""
    return json.loads(QWEN.encode(QWEN.decode(PAYLOADS[name]), Verdict(**verdict)).stdout)


def test_a_rewrite_is_a_denial_with_the_new_call() -> None:
    """Qwen Code would run the tool with the old input."""
    specific = answer("PreToolUse:run_shell_command", input={"command": "ls"})["hookSpecificOutput"]
    assert specific["permissionDecision"] == "deny"
    assert 'run_shell_command {"command": "ls"}' in specific["permissionDecisionReason"]


def test_a_question_reaches_the_person() -> None:
    """Qwen Code asks at its terminal in each of its modes, and denies the call where no person is."""
    specific = answer("PreToolUse:run_shell_command", ask="Really?")["hookSpecificOutput"]
    assert (specific["permissionDecision"], specific["permissionDecisionReason"]) == ("ask", "Really?")


def test_no_answer_before_a_tool_allows_it() -> None:
    """Qwen Code has asked for permission by then; only the event of that question takes an allow."""
    assert answer("PreToolUse:run_shell_command", allow=True) == {}
    decision = answer("PermissionRequest:run_shell_command", allow=True)["hookSpecificOutput"]["decision"]
    assert decision == {"behavior": "allow"}
    assert isinstance(QWEN.decode(PAYLOADS["PermissionRequest:run_shell_command"]), PermissionAsked)


def test_a_result_is_replaced_by_the_words_for_stopping() -> None:
    """The model reads the text in the place of the result, and goes on; a text for the model is in it."""
    assert answer("PostToolUse:run_shell_command", output=ToolOutput("hidden"), context=("more",)) == {
        "continue": False,
        "stopReason": "hidden\n\nmore",
    }
    assert answer("PostToolUse:run_shell_command", output=ToolOutput(" ")) == {
        "continue": False,
        "stopReason": "(no output)",
    }


def test_a_text_after_a_failure_is_context() -> None:
    """A failure stays as it is, so the changed text comes beside it."""
    changed = answer("PostToolUseFailure:run_shell_command", output=ToolOutput("changed"), context=("more",))
    assert changed["hookSpecificOutput"]["additionalContext"] == "more\n\nchanged"
    assert "continue" not in changed


def test_the_output_of_a_command_is_read_without_the_lines_around_it() -> None:
    """Hooks get the output only, also if it has several lines or looks like one of those lines."""
    event = QWEN.decode(PAYLOADS["PostToolUse:run_shell_command"])
    assert isinstance(event, CallEnded)
    assert event.output.text == "ORIG-OUT"
    text = (
        "Command: a\nb\nDirectory: (root)\nOutput: one\nError: two\nthree\nError: (none)\nExit Code: 0\nSignal: (none)"
    )
    payload = {**PAYLOADS["PostToolUse:run_shell_command"]}
    payload["tool_response"] = {"llmContent": f"{text}\nProcess Group PGID: 7"}
    event = QWEN.decode(payload)
    assert isinstance(event, CallEnded)
    assert event.output.text == "one\nError: two\nthree"


@given(st.text(st.characters(exclude_categories=["Cs"])))
@examples(200)
def test_any_other_text_is_read_whole(text: str) -> None:
    """A text of another tool loses nothing."""
    payload = {**PAYLOADS["PostToolUse:read_file"], "tool_response": {"llmContent": f"{text}."}}
    event = QWEN.decode(payload)
    assert isinstance(event, CallEnded)
    assert event.output.text == f"{text}."


def test_a_failed_tool_is_a_failure() -> None:
    """Qwen Code has an event of its own for it."""
    for name in ("PostToolUseFailure:run_shell_command", "PostToolUseFailure:read_file"):
        event = QWEN.decode(PAYLOADS[name])
        assert isinstance(event, CallEnded)
        assert event.output.is_error
        assert event.output.text == PAYLOADS[name]["error"]


def test_tools_have_our_names_and_arguments() -> None:
    """A tool that Qwen Code finds by a search is reported under its own name too."""
    monitor = QWEN.decode(PAYLOADS["PreToolUse:monitor"])
    write = QWEN.decode(PAYLOADS["PreToolUse:write_file"])
    edit = QWEN.decode(PAYLOADS["PreToolUse:edit"])
    assert isinstance(monitor, CallAsked)
    assert isinstance(write, CallAsked)
    assert isinstance(edit, CallAsked)
    assert (monitor.tool_name, monitor.input["command"]) == ("bash", "touch pwned; sleep 1")
    assert (write.tool_name, set(write.input)) == ("write", {"path", "content"})
    assert (edit.tool_name, set(edit.input)) == ("edit", {"path", "oldText", "newText"})


def test_the_events_of_a_subagent_name_it() -> None:
    """A call of a sub-agent has its id."""
    event = QWEN.decode(PAYLOADS["PreToolUse:subagent"])
    assert event.agent_id == PAYLOADS["SubagentStart"]["agent_id"] != "main"


def test_a_prompt_after_a_result_is_empty() -> None:
    """Qwen Code sends one after each result, and the text of a Continue as one."""
    after, continued = (QWEN.decode(PAYLOADS[f"UserPromptSubmit:{name}"]) for name in ("after_result", "continued"))
    assert isinstance(after, PromptGiven)
    assert isinstance(continued, PromptGiven)
    assert (after.prompt, continued.prompt) == ("", "GO-ON")
    assert QWEN.returns_continue


def test_a_failure_of_the_command_denies() -> None:
    """Qwen Code runs the tool after an exit code of 2 without a text on stderr."""
    installed = QWEN.install({}, ["agent-hooks", "bridge", "qwen-code"], ["PreToolUse", "Stop"])
    gate, stop = (installed["hooks"][event][0]["hooks"][0] for event in ("PreToolUse", "Stop"))
    assert gate["command"].endswith("|| sh -c 'echo agent-hooks failed >&2; exit 2' || exit 2")
    assert gate["timeout"] == 600
    assert stop["command"].endswith("Stop || exit 0")
    assert "timeout" not in stop
