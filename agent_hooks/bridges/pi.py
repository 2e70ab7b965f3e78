"""The bridge to pi, with the extension events of version 1.6.0.  `server/plugins/pi.js` sends them.

pi takes a changed input only in the event's own object.  An error in a handler blocks a tool call, and lets everything
else pass, so a refusal of a prompt is an answer and no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base.happenings import CallEnded
from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.bridges.plugin import END, LATER, NOTES, PluginBridge, PluginFields, their_block
from agent_hooks.bridges.tables import VALUE, Layout, Row, our_result
from agent_hooks.values.content import TextContent, ToolCallContent, ToolOutput, ToolResultMessage
from agent_hooks.values.events import Event, SessionEvent, TurnEnd
from agent_hooks.values.frozen import thaw

# A custom message that the model sees as one of the person.
_GO_ON = {"type": "custom_message", "customType": "agent_hooks", "content": VALUE, "display": True}


class Pi(PluginBridge):
    """The bridge to pi."""

    name = "pi"
    title = "pi"
    program = "pi"
    tested = "1.6.0"
    plugin = "pi.js"
    rows = (
        Row(
            "tool_call",
            "call",
            {
                "block": {"return": {"block": True, "reason": VALUE}},
                "ask": {"ask": VALUE},
                "input": {"assign": {"input": VALUE}},
                **END,
                **LATER,
                **NOTES,
            },
        ),
        Row("tool_result", "result", {"output": {"return": VALUE}, **END, **NOTES}),
        Row(
            "input",
            "prompt",
            {
                "block": {"return": {"action": "handled"}, "notes": {"reason": VALUE}},
                "prompt": {"return": {"action": "transform", "text": VALUE}},
                **NOTES,
            },
        ),
        Row("session_start", "start", {**LATER, **NOTES}),
        Row("session_shutdown", "end", NOTES),
        Row("turn_end", says={**END, **NOTES}, feeds=("turn_end", "turn_start")),
        Row("agent_before_settle", "stop", {"go_on": {"return": {"continue": True, "entries": [_GO_ON]}}, **NOTES}),
        Row(
            "session_before_compact",
            "before_compact",
            {"block": {"return": {"cancel": True}, "notes": {"reason": VALUE}}, **NOTES},
        ),
        Row("session_compact", "compact", NOTES),
    )
    fields = PluginFields(
        file="sessionFile",
        tool="toolName",
        input="input",
        call="toolCallId",
        prompt="text",
        said="said",
        continued="continued",
        source="reason",
        instructions="customInstructions",
        summary="summary",
        reason="reason",
    )
    layout = Layout(files={"user": "{home}/settings.json"}, home=("PI_CODING_AGENT_DIR", "~/.pi/agent"))
    listed = ("extensions",)
    moves_on = ("reload", "new", "resume", "fork")
    tools = (
        ToolWords("bash", "bash"),
        ToolWords("powershell", "bash"),
        ToolWords("read", "read"),
        ToolWords("write", "write"),
        ToolWords("edit", "edit"),
        ToolWords("grep", "grep"),
        ToolWords("find", "find"),
        ToolWords("ls", "ls"),
    )
    limits = {  # noqa: RUF012  # a table, like the other attributes
        "subagents": "pi starts no sub-agents",
        "patch": "pi has no tool that applies patches",
    }

    def events_of(self, row: Row, payload: Mapping[str, Any]) -> tuple[Event[Any], ...]:
        """Return our events for an event of pi; after the results of tools, the next turn starts."""
        if row.name == "turn_end":
            following = self.next_turn()
            ended = self._turn_end(payload, following.timestamp)
            return (ended, following) if ended.tool_results else (ended,)
        reason = payload.get("reason")
        # pi has loaded its extensions again, and the session goes on.
        if row.kind == "start" and reason == "reload":
            return ()
        if row.kind == "start" and reason == "new":
            return (SessionEvent(reason="clear", session_file=payload.get("sessionFile")),)
        return super().events_of(row, payload)

    def _turn_end(self, payload: Mapping[str, Any], now: int) -> TurnEnd:
        blocks = payload.get("said") or ()
        calls = [
            ToolCallContent(str(each.get("id")), str(each.get("name")), each.get("arguments") or {})
            for each in payload.get("calls") or ()
            if isinstance(each, dict)
        ]
        results = [
            ToolResultMessage(
                tool_call_id=str(each.get("toolCallId")),
                tool_name=str(each.get("toolName")),
                content=our_result(each.get("content")).content,
                timestamp=now,
            )
            for each in payload.get("toolResults") or ()
            if isinstance(each, dict)
        ]
        words = [TextContent(blocks)] if isinstance(blocks, str) and blocks else []
        return TurnEnd(turn_index=0, message=self.assistant_message([*words, *calls]), tool_results=tuple(results))

    def _output(self, row: Row, payload: Mapping[str, Any]) -> ToolOutput:
        result = our_result(payload.get("content"))
        return ToolOutput(result.content, payload.get("details"), payload.get("isError") is True)

    def native_result(self, event: CallEnded, output: ToolOutput) -> tuple[Any, list[str]]:
        """Return a changed result as pi takes it; `details` are kept for the screen and in the session file."""
        changed: dict[str, Any] = {"content": [their_block(block) for block in output.content]}
        if output.is_error != event.output.is_error:
            changed["isError"] = output.is_error
        if output.details != event.output.details:
            changed["details"] = thaw(output.details)
        return changed, []
