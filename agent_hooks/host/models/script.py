"""A model that replays recorded turns: `--model script:FILE.jsonl`.

Each line is one response: `{"text"?, "thinking"?, "toolCalls"?: [{"id"?, "name", "arguments"}]}`.  The lines of a session
file work too: its assistant messages are replayed, its other entries passed over.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from json import dumps
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks.errors import ModelError, os_reason
from agent_hooks.host.model import EndPiece, ModelRequest, Piece, TextPiece, ThinkingPiece, ToolCallPiece
from agent_hooks.values.content import AssistantMessage, Entry, MessageEntry, ThinkingContent


class ScriptedCall(Struct, forbid_unknown_fields=True):
    """A tool call of a recorded response."""

    name: str
    arguments: dict[str, Any] = {}
    id: str = ""


class ScriptedResponse(Struct, rename="camel", forbid_unknown_fields=True):
    """One line of a script."""

    text: str = ""
    thinking: str = ""
    tool_calls: list[ScriptedCall] = []


def create(argument: str) -> Script:
    """Return the model that replays the file `argument`; raises `ModelError` when it cannot be read."""
    if not argument:
        raise ModelError("which file? Use --model script:FILE.jsonl")
    path = Path(argument)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = os_reason(exc) if isinstance(exc, OSError) else "is not UTF-8"
        raise ModelError(f"script {path}: {reason}") from None
    lines = enumerate(text.split("\n"), 1)
    return Script(path, [turn for number, line in lines if line.strip() and (turn := _read(path, number, line))])


class Script:
    """Answers each request with the next recorded response."""

    provider = "script"

    def __init__(self, path: Path, responses: list[ScriptedResponse]) -> None:
        self.id = path.name
        self._path = path
        self._responses = responses
        self._played = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Replay the next response; raises `ModelError` when there is none."""
        if self._played == len(self._responses):
            raise ModelError(f"script {self._path}: all {self._played} responses are played; add one more line")
        response = self._responses[self._played]
        self._played += 1
        if response.thinking:
            yield ThinkingPiece(response.thinking)
        for line in response.text.splitlines(keepends=True):
            yield TextPiece(line)
        for index, call in enumerate(response.tool_calls):
            yield ToolCallPiece(index, dumps(call.arguments), call.id, call.name)
        yield EndPiece("tool_use" if response.tool_calls else "stop")


def _read(path: Path, number: int, line: str) -> ScriptedResponse | None:
    """Return the response a line holds, or `None` for another entry of a session file."""
    try:
        value = json.loads(line)
        if not isinstance(value, dict) or "type" not in value:
            return msgspec.convert(value, ScriptedResponse)
        entry: Any = msgspec.convert(value, Entry)
    except ValueError as exc:
        raise ModelError(f"script {path}:{number}: {exc}") from None
    message = entry.message if isinstance(entry, MessageEntry) else None
    if not isinstance(message, AssistantMessage):
        return None
    thinking = "".join(block.thinking for block in message.content if isinstance(block, ThinkingContent))
    calls = [ScriptedCall(call.name, dict(call.arguments), call.id) for call in message.tool_calls]
    return ScriptedResponse(message.text, thinking, calls)
