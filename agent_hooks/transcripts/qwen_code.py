"""Qwen Code's transcripts, `~/.qwen/projects/*/chats/**/*.jsonl`, in the format of version 0.24.4.

Calls are parts of the model's messages, and each result has a line of its own, with the way in which the call ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_hooks.transcripts.base import (
    ForeignReader,
    Place,
    RecordedCall,
    RecordedEnd,
    Then,
    plain_text,
    text,
)

_INVALID = ("invalid_tool_params", "tool_not_registered")


class QwenCodeReader(ForeignReader):
    """Reads one transcript."""

    name, title, event = "qwen-code", "Qwen Code", "PreToolUse"
    place = Place(".qwen", "projects/*/chats/**/*.jsonl")

    def is_mine(self, data: Mapping[str, Any]) -> bool:
        """Tell whether an object is a line of a chat."""
        return all(isinstance(data.get(name), str) for name in ("uuid", "sessionId", "provenance"))

    def found(self, data: Mapping[str, Any]) -> Iterator[RecordedCall | RecordedEnd]:
        """Yield the calls and ends in an object."""
        self.session = text(data.get("sessionId")) or self.session
        self.cwd = text(data.get("cwd")) or self.cwd
        self.agent = text(data.get("agentId")) or "main"
        if data.get("type") == "assistant":
            for part in data["message"].get("parts") or ():
                if isinstance(asked := part.get("functionCall"), dict):
                    yield self.call(asked.get("id"), asked.get("name"), asked.get("args"), data.get("timestamp"))
        elif data.get("type") == "tool_result":
            ended = data.get("toolCallResult") or {}
            for call, _ in self.results(data):
                yield RecordedEnd(call, _then(ended))

    def results(self, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the results in an object."""
        for part in data["message"].get("parts") or ():
            if isinstance(given := part.get("functionResponse"), dict) and text(given.get("id")):
                response = given.get("response") or {}
                yield given["id"], plain_text(response.get("output", response.get("error")))


def _then(ended: Mapping[str, Any]) -> Then:
    kind = ended.get("errorType")
    if kind in _INVALID:
        return "invalid"
    if kind == "execution_denied":
        return "denied"
    if ended.get("status") == "cancelled":
        # The person has said no before it began, or has stopped it.
        return "denied" if ended.get("executionStatus") == "not_started" else "aborted"
    return "ran" if ended.get("status") == "success" else "failed"
