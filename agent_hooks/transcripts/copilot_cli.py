"""Copilot CLI's transcripts, `~/.copilot/session-state/*/events.jsonl`, in the format of version 1.0.102.

A call has an event when the model asks for it, as a part of its message, and two when its tool starts and ends, also if
it is denied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_hooks.transcripts.base import ForeignReader, Place, RecordedCall, RecordedEnd, Then, text

_KINDS = ("session.", "user.", "assistant.", "tool.")
_DENIED = ("denied", "rejected")
_INVALID = ("invalid_arguments", "tool_not_found")


class CopilotCliReader(ForeignReader):
    """Reads one transcript."""

    name, title, event = "copilot-cli", "Copilot CLI", "preToolUse"
    place = Place(".copilot", "session-state/*/events.jsonl", "COPILOT_HOME")

    def is_mine(self, data: Mapping[str, Any]) -> bool:
        """Return whether an object is an event of a session."""
        kind = data.get("type")
        return isinstance(kind, str) and kind.startswith(_KINDS) and isinstance(data.get("data"), dict)

    def found(self, data: Mapping[str, Any]) -> Iterator[RecordedCall | RecordedEnd]:
        """Yield the calls and ends in an object."""
        given = data.get("data") or {}
        match data.get("type"):
            case "session.start" | "session.resume":
                self.session = text(given.get("sessionId")) or self.session
                self.cwd = text((given.get("context") or {}).get("cwd")) or self.cwd
            case "assistant.message":
                self.agent = text(data.get("agentId")) or "main"
                for asked in given.get("toolRequests") or ():
                    arguments = asked.get("arguments")
                    yield self.call(asked.get("toolCallId"), asked.get("name"), arguments, data.get("timestamp"))
            case "tool.execution_complete" if text(given.get("toolCallId")):
                yield RecordedEnd(given["toolCallId"], _then(given))

    def payload(self, call: RecordedCall) -> Mapping[str, Any]:
        """Return the payload of Copilot CLI's own form."""
        return {"sessionId": call.session_id, "cwd": call.cwd, "toolName": call.tool_name, "toolArgs": call.input}

    def results(self, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the result in an object."""
        given = data["data"]
        if data["type"] == "tool.execution_complete":
            ended = given.get("result") or {}
            yield given["toolCallId"], str(ended.get("content") or (given.get("error") or {}).get("message") or "")


def _then(given: Mapping[str, Any]) -> Then:
    code = (given.get("error") or {}).get("code")
    if code in _DENIED:
        return "denied"
    if code in _INVALID:
        return "invalid"
    if given.get("success") is not True:
        return "failed"
    return "failed" if (given.get("shellExecution") or {}).get("exitCode") else "ran"
