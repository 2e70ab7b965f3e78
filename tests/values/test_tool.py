"""The helpers that narrow an event to the input and details of a built-in tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

import agent_hooks
from agent_hooks import (
    BashToolDetails,
    FindToolDetails,
    GrepToolDetails,
    LsToolDetails,
    ReadToolDetails,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    Truncation,
    is_bash_tool_call,
    is_bash_tool_result,
)

BUILT_IN: dict[str, type | None] = {
    "bash": BashToolDetails,
    "read": ReadToolDetails,
    "write": None,
    "edit": None,
    "ls": LsToolDetails,
    "find": FindToolDetails,
    "grep": GrepToolDetails,
}
TRUNCATION = Truncation(
    truncated=True, truncated_by="lines", total_lines=9, total_bytes=99, output_lines=1, output_bytes=10
)


def helper(name: str, kind: str) -> Callable[[Any], bool]:
    """Return `is_<name>_tool_<kind>`."""
    found: Callable[[Any], bool] = getattr(agent_hooks, f"is_{name}_tool_{kind}")
    return found


def result(name: str, details: object) -> ToolResult:
    """Return a result of a tool."""
    return ToolResult(tool_name=name, tool_call_id="1", input={}, content="", details=details)


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_helper_takes_the_calls_of_its_own_tool_only(name: str) -> None:
    """A helper compares the tool's name."""
    for other in (*BUILT_IN, "custom"):
        assert helper(name, "call")(ToolCall(tool_name=other, tool_call_id="1", input={})) == (other == name)


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_helper_takes_the_results_of_its_own_tool_and_details_only(name: str) -> None:
    """A result with details of another kind comes from a custom tool of the same name."""
    is_result = helper(name, "result")
    own = BUILT_IN[name]
    for other in (*BUILT_IN, "custom"):
        assert is_result(result(other, None)) == (other == name)
    for kind in filter(None, BUILT_IN.values()):
        assert is_result(result(name, kind())) == (kind is own)
    assert not is_result(result(name, {"truncation": None}))


def test_a_narrowed_event_has_typed_input_and_details() -> None:
    """The type checker knows both after the helper returned true."""
    call = ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"})
    assert is_bash_tool_call(call)
    command: str = call.input["command"]
    assert command == "ls"
    event = result("bash", BashToolDetails(truncation=TRUNCATION, full_output_path="/tmp/out"))
    assert is_bash_tool_result(event)
    assert event.details is not None
    assert event.details.truncation == TRUNCATION


def test_details_are_camel_case_on_the_wire_and_absent_when_nothing_was_cut() -> None:
    """`truncation` is there only when output was cut."""
    assert msgspec.to_builtins(BashToolDetails()) == {}
    assert msgspec.to_builtins(GrepToolDetails(truncation=TRUNCATION, full_output_path="/o")) == {
        "truncation": {
            "truncated": True,
            "truncatedBy": "lines",
            "totalLines": 9,
            "totalBytes": 99,
            "outputLines": 1,
            "outputBytes": 10,
        },
        "fullOutputPath": "/o",
    }


def test_any_object_of_the_right_form_is_a_tool() -> None:
    """A tool needs no base class."""

    class Echo:
        name = "echo"
        description = "Says it again."
        input_schema: Mapping[str, Any] = {"type": "object"}

        async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> ToolOutput:
            return ToolOutput(str(input))

    tool: Tool = Echo()
    assert isinstance(tool, Tool)
    assert not isinstance(object(), Tool)
