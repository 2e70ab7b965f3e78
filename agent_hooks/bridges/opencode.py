"""The bridge to OpenCode, whose plugin hooks are those of version 1.18.33; `server/plugins/opencode.js` sends them.

A hook of OpenCode gets two objects, and changes the second one in its place.  An event holds the fields of both.  An
error of a hook stops the tool call or the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base.happenings import CallEnded, PromptGiven
from agent_hooks.bridges.base.words import BridgeError, ToolWords, text_field
from agent_hooks.bridges.plugin import END, LATER, NOTES, PluginBridge, PluginFields, their_block
from agent_hooks.bridges.tables import VALUE, Layout, Row, our_result
from agent_hooks.errors import shown
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import Event, TurnEnd

_FILE = {"filePath": "path"}
# The fields of a result's `metadata` that hold its text once more, for the screen.
_COPIES = ("output", "preview")


class OpenCode(PluginBridge):
    """The bridge to OpenCode."""

    name = "opencode"
    title = "OpenCode"
    program = "opencode"
    tested = "1.18.33"
    settings_format = "jsonc"
    settings_names = ("opencode.json", "opencode.jsonc")
    plugin = "opencode.js"
    rows = (
        Row(
            "tool.execute.before",
            "call",
            {"block": {"throw": VALUE}, "input": {"assign": {"args": VALUE}}, **END, **LATER, **NOTES},
        ),
        Row("tool.execute.after", "result", {"output": {"assign": VALUE}, **END, **NOTES}),
        Row("tool.failed", "failure", {**END, **NOTES}),
        Row(
            "chat.message",
            "prompt",
            {"block": {"throw": VALUE, "notes": {"reason": VALUE}}, "prompt": {"assign": {"parts": VALUE}}, **NOTES},
        ),
        Row("session.created", "start", {**LATER, **NOTES}),
        Row("session.deleted", "end", NOTES),
        Row("dispose", "end", NOTES),
        Row("step-finish", says={**END, **NOTES}, feeds=("turn_end", "turn_start")),
        Row("session.idle", "stop", {"go_on": {"prompt": VALUE}, **NOTES}),
        Row(
            "experimental.session.compacting",
            "before_compact",
            {"block": {"throw": VALUE, "notes": {"reason": VALUE}}, **NOTES},
        ),
        Row("session.compacted", "compact", NOTES),
    )
    fields = PluginFields(
        tool="tool",
        input="args",
        call="callID",
        result="",
        error="error",
        said="said",
        continued="continued",
        source="source",
    )
    layout = Layout(files={"user": "{home}/opencode/opencode.json"}, home=("XDG_CONFIG_HOME", "~/.config"))
    listed = ("plugin",)
    scheme = "file://"
    returns_continue = True
    tools = (
        ToolWords("bash", "bash", milliseconds=("timeout",)),
        ToolWords("read", "read", _FILE),
        ToolWords("write", "write", _FILE),
        ToolWords("edit", "edit", {**_FILE, "oldString": "oldText", "newString": "newText"}),
        ToolWords("glob", "find"),
        ToolWords("grep", "grep", {"include": "glob"}),
        ToolWords("list", "ls"),
    )
    limits = {  # noqa: RUF012  # a table, like the other attributes
        "ask": "OpenCode lets no plugin ask the person about a call, so a question is a denial",
        "continue": "`opencode run` ends when its model stops (at its screen, hooks can)",
    }

    def prompt_of(self, payload: Mapping[str, Any]) -> str:
        """Return the texts that the person wrote, without those that OpenCode adds."""
        return "\n".join(part["text"] for part in _texts(payload))

    def events_of(self, row: Row, payload: Mapping[str, Any]) -> tuple[Event[Any], ...]:
        """Return our events for an event of OpenCode; a step ends a turn, and begins the next one after tool calls."""
        if row.name != "step-finish":
            return super().events_of(row, payload)
        ended = TurnEnd(turn_index=0, message=self.assistant_message([]), tool_results=())
        return (ended, self.next_turn()) if payload.get("reason") == "tool-calls" else (ended,)

    def _output(self, row: Row, payload: Mapping[str, Any]) -> ToolOutput:
        if row.kind == "failure":
            return super()._output(row, payload)
        if isinstance(payload.get("content"), list):
            # The result of a tool of an MCP server.
            return our_result(payload)
        metadata = payload.get("metadata")
        code = metadata.get("exit") if isinstance(metadata, dict) else None
        return ToolOutput(text_field(payload, "output", ""), is_error=isinstance(code, int) and code != 0)

    def native_result(self, event: CallEnded, output: ToolOutput) -> tuple[Any, list[str]]:
        """Return the fields of a changed result; the copies of its text are changed too."""
        native = event.native["event"]
        if isinstance(native.get("content"), list):
            return {"content": [their_block(block) for block in output.content], "isError": output.is_error}, []
        metadata = native.get("metadata")
        if not isinstance(metadata, dict):
            return {"output": output.text}, []
        copies = {key: output.text for key in _COPIES if isinstance(metadata.get(key), str)}
        return {"output": output.text, "metadata": {**metadata, **copies}}, []

    def their_prompt(self, event: PromptGiven, text: str) -> Any:
        """Return the parts of a prompt with another text in the place of its texts."""
        parts = event.native["event"]["parts"]
        texts = _texts(event.native["event"])
        first = {**(texts[0] if texts else {"type": "text"}), "text": text}
        others = [part for part in parts if part not in texts]
        return [first, *others]


def _texts(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    parts = payload.get("parts")
    if not isinstance(parts, list):
        raise BridgeError(f"parts must be a list, not {shown(parts)}")
    return [
        part
        for part in parts
        if isinstance(part, dict)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
        and not part.get("synthetic")
    ]
