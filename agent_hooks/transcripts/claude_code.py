"""Claude Code's transcripts, `~/.claude/projects/**/*.jsonl`, in the format of version 2.1.332.

Each block of a message has a line of its own, with lines of many other kinds in between.  A fork of a session is a file
that begins with a copy of the other's lines under a new session id; the ids of the calls are the same.  A sub-agent has a
file of its own, `<session>/subagents/agent-<id>.jsonl`; older versions put its lines into the session's file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base.happenings import CallAsked
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.errors import describe
from agent_hooks.transcripts.base import (
    MALFORMED,
    Place,
    RecordedCall,
    RecordedEnd,
    Then,
    TranscriptError,
    decoded,
    plain_text,
    text,
)

_NOTHING = Raw(b"null")
# Recent versions record a decision in a field, and then only the field counts.  Without a decision, in older versions and
# for calls that never got to one, the beginning of the result's text is the only record.
_DENIALS = re.compile(r"\s*(PreToolUse:\S+ hook error|The user doesn't want to proceed with this tool use)")
_INVALID = re.compile(r"<tool_use_error>(InputValidationError|Error: No such tool available)")
# The characters of a result that are matched.
_BEGINNING = 200


class _Line(Struct, rename="camel"):
    """The fields that matter; in lines of other kinds they may hold any value."""

    type: Any = None
    message: Raw = _NOTHING
    cwd: Any = None
    session_id: Any = None
    agent_id: Any = None
    is_sidechain: Any = None
    timestamp: Any = None
    uuid: Any = None
    permission_decision: Any = None
    tool_denial_kind: Any = None
    leaf_uuid: Any = None
    message_id: Any = None


class _Block(Struct):
    type: Any = None
    id: Any = None
    name: Any = None
    input: Any = None
    tool_use_id: Any = None
    is_error: Any = None
    content: Raw = _NOTHING


class _Message(Struct):
    id: Any = None
    content: str | list[_Block] | None = None


class _TextBlock(Struct):
    text: Any = None


_lines = msgspec.json.Decoder(_Line)
_messages = msgspec.json.Decoder(_Message)
_texts = msgspec.json.Decoder(str | list[_TextBlock] | None)


class ClaudeCodeReader:
    """Reads one transcript.  `path`: the session's file, for the payload that hooks get."""

    name, title = "claude-code", "Claude Code"
    place = Place(".claude", "projects/**/*.jsonl", "CLAUDE_CONFIG_DIR")

    def __init__(self, path: str) -> None:
        self._path = path
        self._bridge = open_bridge(self.name)
        self.tools = self._bridge.tools

    def recognises(self, line: bytes) -> bool:
        """Tell whether a line has the id of a session or of a message."""
        try:
            found = _lines.decode(line)
        except MALFORMED:
            return False
        names = (found.session_id, found.leaf_uuid, found.message_id)
        return isinstance(found.type, str) and any(isinstance(name, str) for name in names)

    def read(self, line: bytes) -> Sequence[RecordedCall | RecordedEnd]:
        """Return the calls and ends in a line; raises `TranscriptError`."""
        try:
            found, message, blocks = _decoded(line)
        except MALFORMED:
            # The fast decoder takes no half of a surrogate pair, which an output that was cut may have.
            try:
                found, message, blocks = _decoded(msgspec.json.encode(decoded(line)))
            except MALFORMED as exc:
                raise TranscriptError(f"cannot be read: {describe(exc)}") from None
        if found.type == "assistant":
            return [self._call(found, message, block) for block in blocks if block.type == "tool_use"]
        if found.type == "user":
            return [
                RecordedEnd(block.tool_use_id, _then(found, block))
                for block in blocks
                if block.type == "tool_result" and isinstance(block.tool_use_id, str)
            ]
        return ()

    def shown(self, line: bytes, tool_call_id: str) -> str | None:
        """Return the result of a call in a line, as the model saw it; `None` if the line has none that can be read."""
        try:
            _, _, blocks = _decoded(msgspec.json.encode(decoded(line)))
            found = next(block for block in blocks if block.type == "tool_result" and block.tool_use_id == tool_call_id)
            return plain_text(msgspec.json.decode(found.content))
        except (StopIteration, TranscriptError, *MALFORMED):
            return None

    def _call(self, line: _Line, message: str | None, block: _Block) -> RecordedCall:
        if not isinstance(block.name, str):
            raise TranscriptError("cannot be read: a tool_use block has no name")
        agent = line.agent_id or ("sidechain" if line.is_sidechain is True else None)
        call_id = text(block.id)
        # Some models number their calls in each message.
        place = message or text(line.uuid) or (text(line.session_id), text(line.timestamp))
        common: dict[str, Any] = {
            "key": (place, call_id) if call_id else None,
            "tool_call_id": call_id or "",
            "cwd": text(line.cwd),
            "session_id": text(line.session_id),
            "agent_id": text(agent) or "main",
            "time": text(line.timestamp),
        }
        if not isinstance(block.input, dict):
            return RecordedCall(**common, tool_name=block.name, input={}, invalid=True)
        native = {
            "session_id": common["session_id"],
            "transcript_path": self._path,
            "cwd": common["cwd"],
            **({"agent_id": common["agent_id"]} if agent else {}),
            "hook_event_name": "PreToolUse",
            "tool_name": block.name,
            "tool_input": block.input,
            "tool_use_id": common["tool_call_id"],
        }
        try:
            asked = self._bridge.decode(native)
        except (BridgeError, RecursionError) as exc:
            return RecordedCall(**common, tool_name=block.name, input=block.input, refused=describe(exc))
        assert isinstance(asked, CallAsked)
        return RecordedCall(**common, tool_name=asked.tool_name, input=asked.input, native=asked.native)


def _decoded(line: bytes) -> tuple[_Line, str | None, Sequence[_Block]]:
    """Return a line, with the id and the blocks of its message."""
    found = _lines.decode(line)
    if found.type not in ("assistant", "user"):
        return found, None, ()
    message = _messages.decode(found.message)
    return found, text(message.id), message.content if isinstance(message.content, list) else ()


def _then(line: _Line, block: _Block) -> Then:
    if line.tool_denial_kind in ("cancelled", "interrupted"):
        return "aborted"
    decision = line.permission_decision
    if line.tool_denial_kind or (isinstance(decision, Mapping) and decision.get("decision") == "reject"):
        return "denied"
    if block.is_error is not True:
        return "ran"
    shown = "" if decision else _beginning(block.content)
    return "denied" if _DENIALS.match(shown) else "invalid" if _INVALID.match(shown) else "failed"


def _beginning(content: Raw) -> str:
    try:
        found = _texts.decode(content)
    except MALFORMED:
        return ""
    shown = found[0].text if isinstance(found, list) and found else found
    return shown[:_BEGINNING] if isinstance(shown, str) else ""
