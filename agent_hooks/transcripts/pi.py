"""pi's transcripts, `~/.pi/agent/sessions/**/*.jsonl`, in the format of version 1.6.0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_hooks.transcripts.base import (
    ForeignReader,
    Place,
    RecordedCall,
    RecordedEnd,
    Then,
    is_refusal,
    plain_text,
    text,
)

# The version of pi's format.
_VERSION = 3


class PiReader(ForeignReader):
    """Reads one transcript."""

    name, title, event = "pi", "pi", "tool_call"
    place = Place(".pi/agent", "sessions/**/*.jsonl", "PI_CODING_AGENT_DIR")

    def is_mine(self, data: Mapping[str, Any]) -> bool:
        """Return whether an object is the header of a session, or a message, with the fields of pi."""
        return _is_header(data) or (data.get("type") == "message" and "parentId" in data)

    def found(self, data: Mapping[str, Any]) -> Iterator[RecordedCall | RecordedEnd]:
        """Yield the calls and ends in an object."""
        if _is_header(data):
            self.session, self.cwd = data["id"], data["cwd"]
        message = data.get("message")
        if data.get("type") != "message" or not isinstance(message, dict):
            return
        if message.get("role") == "assistant":
            for block in message.get("content") or ():
                if isinstance(block, dict) and block.get("type") == "toolCall":
                    yield self.call(block.get("id"), block.get("name"), block.get("arguments"), data.get("timestamp"))
        elif message.get("role") == "toolResult" and text(message.get("toolCallId")):
            yield RecordedEnd(message["toolCallId"], _then(message))

    def payload(self, call: RecordedCall) -> Mapping[str, Any]:
        """Return the payload of the plugin."""
        event = {
            "sessionFile": self._path,
            "type": self.event,
            "toolName": call.tool_name,
            "toolCallId": call.tool_call_id,
            "input": call.input,
        }
        session = {"session": call.session_id, "parent": None, "directory": call.cwd}
        return {"hook": self.event, "event": event, **session}

    def results(self, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the result in an object."""
        message = data["message"]
        if message["role"] == "toolResult":
            yield message["toolCallId"], plain_text(message.get("content"))


def _is_header(data: Mapping[str, Any]) -> bool:
    named = isinstance(data.get("id"), str) and isinstance(data.get("cwd"), str)
    return data.get("type") == "session" and data.get("version") == _VERSION and named


def _then(message: Mapping[str, Any]) -> Then:
    if message.get("isError") is not True:
        return "ran"
    return "denied" if is_refusal(plain_text(message.get("content"))) else "failed"
