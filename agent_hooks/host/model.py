"""What the host asks of a model: a request in, pieces of one response out.

Pieces, because real models stream text and write the arguments of tool calls bit by bit.  `collect` puts them together.
Above: agent, models.  Below: content.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from msgspec import Struct

from agent_hooks.content import AssistantBlock, AssistantMessage, Message, TextContent, ThinkingContent, ToolCallContent


class ToolOffer(Struct, frozen=True):
    """A tool as the model is told of it; `input_schema` is a JSON Schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """What the model is asked: instructions, the conversation so far, and the tools it may call."""

    system: tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...]
    thinking_level: str = "off"


class TextPiece(Struct, frozen=True):
    """More of the answer."""

    text: str


class ThinkingPiece(Struct, frozen=True):
    """More of what the model thinks."""

    text: str


class ToolCallPiece(Struct, frozen=True):
    """More of the tool call number `index` of this response; `id` and `name` come with its first piece."""

    index: int
    arguments: str = ""
    id: str = ""
    name: str = ""


class EndPiece(Struct, frozen=True):
    """Why the response ended (`stop`, `tool_use`, `length`), and what it cost, in tokens."""

    stop_reason: str = "stop"
    usage: Mapping[str, Any] | None = None


Piece = TextPiece | ThinkingPiece | ToolCallPiece | EndPiece


class PieceStream(Protocol):
    """An async iterator of pieces that can be closed early; every async generator is one."""

    def __aiter__(self) -> AsyncIterator[Piece]: ...

    async def aclose(self) -> None:
        """Stop the response."""


class Model(Protocol):
    """A model: `provider` and `id` name it; `stream` raises `ModelError` when it cannot answer."""

    @property
    def provider(self) -> str: ...

    @property
    def id(self) -> str: ...

    def stream(self, request: ModelRequest) -> PieceStream:
        """Return the pieces of one response."""
        ...


async def collect(model: Model, request: ModelRequest, on_text: Callable[[str], object]) -> AssistantMessage:
    """Ask `model` and return its whole response; `on_text` hears the text as it comes."""
    text: list[str] = []
    thinking: list[str] = []
    calls: dict[int, list[ToolCallPiece]] = {}
    end = EndPiece()
    async with aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            match piece:
                case TextPiece():
                    text.append(piece.text)
                    on_text(piece.text)
                case ThinkingPiece():
                    thinking.append(piece.text)
                case ToolCallPiece():
                    calls.setdefault(piece.index, []).append(piece)
                case EndPiece():
                    end = piece
    blocks: list[AssistantBlock] = []
    if thinking:
        blocks.append(ThinkingContent("".join(thinking)))
    if text:
        blocks.append(TextContent("".join(text)))
    seen: set[str] = set()
    blocks += [_tool_call(calls[index], seen) for index in sorted(calls)]
    return AssistantMessage(
        content=tuple(blocks),
        timestamp=now_ms(),
        provider=model.provider,
        model=model.id,
        stop_reason="tool_use" if calls else end.stop_reason,
        usage=end.usage,
    )


def _tool_call(pieces: list[ToolCallPiece], seen: set[str]) -> ToolCallContent:
    call_id = "".join(piece.id for piece in pieces)
    if not call_id or call_id in seen:  # results are told apart by the id, and not every model gives one
        call_id = f"call_{uuid.uuid4().hex[:12]}"
    seen.add(call_id)
    name = "".join(piece.name for piece in pieces)
    text = "".join(piece.arguments for piece in pieces)
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        return ToolCallContent(call_id, name, {}, invalid=text)
    if not isinstance(arguments, dict):
        return ToolCallContent(call_id, name, {}, invalid=text)
    return ToolCallContent(call_id, name, arguments)


def now_ms() -> int:
    """Return the time as messages and events carry it: Unix milliseconds."""
    return time.time_ns() // 1_000_000
