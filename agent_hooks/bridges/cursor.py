"""The bridge to Cursor, from its documents: the wire shapes are those of the package `@cursor/sdk` 1.0.32.

No run of a real Cursor has tried it.  Cursor calls several events for one tool call; this bridge takes those that every
tool has.  At them, Cursor takes no question, and of a rewrite only the arguments that a tool's row here names.

Cursor also runs the entries of Claude Code, with payloads and answers of its own: see `CursorAsClaude`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, Happening, Part
from agent_hooks.bridges.base.installation import PROCESS, Power
from agent_hooks.bridges.base.verdicts import Reply
from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.tables import VALUE, Fields, Layout, Row, Templates
from agent_hooks.values.content import ToolOutput

_FILE = {"file_path": "path"}
_CONTEXT: Templates = {"context": {"additional_context": VALUE}}
_FOLLOW_UP: Templates = {"go_on": {"followup_message": VALUE}}
# The arguments that a hook can change, by tool; all others stay as they are.
_TAKEN: Mapping[str, tuple[str, ...]] = {
    "Shell": ("command", "cwd"),
    "Read": ("file_path",),
    "Write": ("file_path",),
    "Delete": ("file_path",),
    "List": ("file_path",),
    "Grep": ("pattern", "file_path"),
    "Fetch": ("url",),
}
_SERVERS = "MCP:"
# The events of an entry of Claude Code, as Cursor names them.
_OWN_NAMES = {
    "PreToolUse": "preToolUse",
    "PostToolUse": "postToolUse",
    "UserPromptSubmit": "beforeSubmitPrompt",
    "Stop": "stop",
    "SubagentStop": "subagentStop",
    "SessionStart": "sessionStart",
    "SessionEnd": "sessionEnd",
    "PreCompact": "preCompact",
}


class Cursor(CommandBridge):
    """The bridge to Cursor."""

    name, title, program, tested = "cursor", "Cursor", "cursor-agent", "1.0.32"
    is_untried = True
    reads = {"claude-code": ("local", "project", "user")}  # noqa: RUF012  # a table, like the other attributes
    environment = ("CURSOR_PROJECT_DIR", "CURSOR_VERSION", PROCESS)
    project_variable, process_variable, here = "CURSOR_PROJECT_DIR", PROCESS, "CURSOR_VERSION"
    timeout = 60
    stop_limit = 5
    returns_continue = True
    merges = True
    fields = Fields(
        session="conversation_id",
        agent="",
        parent="parent_conversation_id",
        result="tool_output",
        error="error_message",
        duration="duration",
        said="",
        continued="loop_count",
        summary="",
        instructions="",
    )
    rows = (
        Row(
            "preToolUse",
            "call",
            {
                "block": {"permission": "deny", "user_message": VALUE},
                "input": {"updated_input": VALUE},
                **_CONTEXT,
            },
        ),
        Row("postToolUse", "result", {"output": {"updated_mcp_tool_output": VALUE}, **_CONTEXT}),
        Row("postToolUseFailure", "failure", _CONTEXT),
        Row("beforeSubmitPrompt", "prompt", {"block": {"continue": False, "user_message": VALUE}, **_CONTEXT}),
        Row("sessionStart", "start", _CONTEXT),
        Row("sessionEnd", "end"),
        Row("stop", "stop", _FOLLOW_UP),
        Row("subagentStop", "stop", _FOLLOW_UP, always=False),
        Row("preCompact", "before_compact", {"message": {"user_message": VALUE}}),
        *(Row(name) for name in ("subagentStart", "afterAgentResponse")),
    )
    layout = Layout(
        # The hooks of a repository run in Cursor's cloud too, where no agent-hooks is.
        files={"user": "~/.cursor/hooks.json"},
        flat=True,
        entry={},
        gate={"failClosed": True},
        top={"version": 1},
    )
    tools = (
        # Cursor reports the typing into a shell, and not the text.
        ToolWords("Shell", "bash", stays_open=True),
        ToolWords("Read", "read", _FILE),
        ToolWords("Write", "write", _FILE),
        ToolWords("Grep", "grep", _FILE),
        ToolWords("List", "ls", _FILE),
    )
    limits: Mapping[Power, str] = {
        "ask": "Cursor ignores a question before a tool, and would run it",
        "replace": "Cursor lets hooks replace the results of MCP tools only",
        "redact": "Cursor lets hooks replace the results of MCP tools only",
        "cancel_compaction": "Cursor lets no hook stop a compaction",
        "stop": "Cursor lets no hook end a run; each later call is denied instead",
        "message": "Cursor shows the person only the reason of a denial",
    }

    def parts(self, tool_name: str, input: Mapping[str, Any]) -> Sequence[Part]:
        """Return the files that a call changes: those of a patch, and one that is deleted."""
        path = input.get("file_path")
        if tool_name == "Delete" and isinstance(path, str):
            # Imported here, because few calls delete a file.
            from agent_hooks.bridges.patch_text import deletion

            return deletion(path)
        return super().parts(tool_name, input)

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Return that no person can be asked, because Cursor takes no question at these events."""
        return False

    def refused_rewrite(self, row: Row, event: CallAsked, wanted: Mapping[str, Any]) -> str | None:
        """Return the reason for which Cursor would not take a rewrite whole; `None` if it would."""
        given = self.input_of(event.native, self.fields.input)
        changed = {key for key, value in wanted.items() if key not in given or given[key] != value}
        dropped = sorted(changed - {*_TAKEN.get(event.native_name, ())})
        if dropped and not event.native_name.startswith(_SERVERS):
            return f"a hook changed {', '.join(dropped)} of {event.native_name}, which Cursor would drop"
        return super().refused_rewrite(row, event, wanted)

    def native_result(self, event: CallEnded, output: ToolOutput) -> tuple[Any, list[str]]:
        """Return a changed result, if it is that of a server's tool; any other one becomes a text for the model."""
        return (output.text, []) if event.native_name.startswith(_SERVERS) else (None, [output.text])


class CursorAsClaude(Cursor):
    """The same bridge for the entries of Claude Code, which name its events; Cursor's payloads name its own."""

    def knows(self, payload: object) -> bool:
        """Return whether a payload is from Cursor."""
        return isinstance(payload, dict) and "cursor_version" in payload

    def decode_as(self, event_name: str | None, payload: object) -> Happening:
        """Return the happening of a payload for an event of Claude Code.  Raises `BridgeError`."""
        return super().decode_as(_OWN_NAMES.get(event_name or "", event_name), payload)

    def refuse(self, event_name: str | None, reason: str) -> Reply:
        """Return the reply for a failure of ours at an event of Claude Code."""
        return super().refuse(_OWN_NAMES.get(event_name or "", event_name), reason)
