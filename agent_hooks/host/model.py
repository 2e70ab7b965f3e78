"""The protocol of a model: a request in, pieces of one response out.

A response comes in pieces, because real models stream text and write the arguments of tool calls bit by bit.  `collect`
puts the pieces together.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from itertools import pairwise
from json import loads
from typing import Any, NoReturn, Protocol, TypeAlias, get_args

from anyio import get_cancelled_exc_class
from msgspec import Struct

from agent_hooks import settings_file
from agent_hooks.errors import ModelError
from agent_hooks.values.content import (
    AssistantBlock,
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    Usage,
)

ThinkingLevel: TypeAlias = settings_file.ThinkingLevel
# The text around a summary, in the message that stands for the older part of a conversation.
SUMMARY_PREFIX = "This is a summary of the conversation so far, in place of its messages.\n\n<summary>\n"
SUMMARY_SUFFIX = "\n</summary>"
THINKING_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)


class ToolOffer(Struct, frozen=True):
    """A tool that the model may call; `input_schema` is a JSON Schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


class Sampling(Struct, frozen=True):
    """The sampling parameters of a request; `None` leaves a value to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


class ModelRequest(Struct, frozen=True, kw_only=True):
    """A request to the model: instructions, the conversation so far, and the tools it may call.

    `headers`: more headers for the HTTP request; a model without HTTP ignores them.
    """

    system: tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...]
    thinking_level: ThinkingLevel = "off"
    sampling: Sampling = Sampling()
    headers: Mapping[str, str] = {}


class TextPiece(Struct, frozen=True):
    """More of the answer."""

    text: str


class ThinkingPiece(Struct, frozen=True):
    """More of the thought number `index` of this response; `signature` comes with its last piece."""

    text: str
    index: int = 0
    signature: str = ""


class ToolCallPiece(Struct, frozen=True):
    """More of the tool call number `index` of this response.

    `id` and `name` come with its first piece, `signature` with its last.
    """

    index: int
    arguments: str = ""
    id: str = ""
    name: str = ""
    signature: str = ""


class NoticePiece(Struct, frozen=True):
    """News for the person while the model is busy, for example of a second try; not a part of the response."""

    text: str


class EndPiece(Struct, frozen=True):
    """The end of a response: the reason (`stop`, `tool_use`, `length`), and its tokens as the provider counts them."""

    stop_reason: str = "stop"
    usage: Usage | None = None


_Part = TextPiece | ThinkingPiece | ToolCallPiece
Piece = _Part | NoticePiece | EndPiece


class BrokenResponseError(ModelError):
    """The model failed after it had begun to answer; `partial` is the response until then, without tool calls."""

    def __init__(self, text: str, partial: AssistantMessage) -> None:
        super().__init__(text)
        self.partial = partial


class PieceStream(Protocol):
    """An async iterator of pieces that can be closed early; every async generator is one."""

    def __aiter__(self) -> AsyncIterator[Piece]: ...

    async def aclose(self) -> None:
        """Stop the response."""


class Model(Protocol):
    """A model, named by `provider` and `id`.

    A model may also have `window`, its window in tokens: then a conversation that gets too long is compacted.
    """

    @property
    def provider(self) -> str: ...

    @property
    def id(self) -> str: ...

    def stream(self, request: ModelRequest) -> PieceStream:
        """Return the pieces of one response; the iteration raises `ModelError` when the model cannot answer."""
        ...


async def collect(
    model: Model,
    request: ModelRequest,
    on_text: Callable[[str], object],
    on_notice: Callable[[str], object] = lambda _: None,
    on_aborted: Callable[[AssistantMessage], object] = lambda _: None,
    *,
    on_thinking: Callable[[str], object] = lambda _: None,
) -> AssistantMessage:
    """Ask `model` and return its whole response.

    `on_text` gets each piece of text, `on_thinking` each of a thought, `on_notice` each notice, as it comes.  When the
    task is cancelled after the first text, `on_aborted` gets the response until then, without tool calls.
    Raises `ModelError` when the model cannot answer: a `BrokenResponseError` when there was text already.
    """
    pieces: list[_Part] = []
    end = EndPiece()
    try:
        async with aclosing(model.stream(request)) as stream:
            async for piece in stream:
                match piece:
                    case NoticePiece():
                        on_notice(piece.text)
                    case EndPiece():
                        end = piece
                    case _:
                        pieces.append(piece)
                        if isinstance(piece, TextPiece):
                            on_text(piece.text)
                        elif isinstance(piece, ThinkingPiece) and piece.text:
                            on_thinking(piece.text)
    except ModelError as exc:
        if (partial := _partial(model, pieces, "error")) is not None:
            raise BrokenResponseError(str(exc), partial) from None
        raise
    except get_cancelled_exc_class():
        if (partial := _partial(model, pieces, "aborted")) is not None:
            on_aborted(partial)
        raise
    return _message(model, _blocks(pieces), end)


def _partial(model: Model, pieces: list[_Part], stop_reason: str) -> AssistantMessage | None:
    """Return an unfinished response without its tool calls, `None` when it has no text yet.

    The calls are left out: half of their arguments may be missing, and a call without a result breaks the session.
    """
    blocks: list[AssistantBlock] = [block for block in _blocks(pieces) if not isinstance(block, ToolCallContent)]
    if not any(isinstance(block, TextContent) for block in blocks):
        return None
    return _message(model, blocks, EndPiece(stop_reason))


def _message(model: Model, blocks: list[AssistantBlock], end: EndPiece) -> AssistantMessage:
    calls = any(isinstance(block, ToolCallContent) for block in blocks)
    return AssistantMessage(
        content=tuple(blocks),
        timestamp=now_ms(),
        provider=model.provider,
        model=model.id,
        stop_reason="tool_use" if calls else end.stop_reason,
        usage=end.usage,
    )


def _blocks(pieces: list[_Part]) -> list[AssistantBlock]:
    """Return the blocks, in the order in which they began; text with another block in between becomes two blocks."""
    found: dict[tuple[type, int], list[Any]] = {}
    texts = 0
    for before, piece in pairwise([None, *pieces]):
        assert piece is not None
        if isinstance(piece, TextPiece):
            texts += not isinstance(before, TextPiece)
        number = texts if isinstance(piece, TextPiece) else piece.index
        found.setdefault((type(piece), number), []).append(piece)
    known_ids: set[str] = set()
    return [_block(kind, of_block, known_ids) for (kind, _), of_block in found.items()]


def _block(kind: type, pieces: list[Any], known_ids: set[str]) -> AssistantBlock:
    if kind is ToolCallPiece:
        return _tool_call(pieces, known_ids)
    text = "".join(piece.text for piece in pieces)
    if kind is TextPiece:
        return TextContent(text)
    return ThinkingContent(text, "".join(piece.signature for piece in pieces) or None)


def _tool_call(pieces: list[ToolCallPiece], known_ids: set[str]) -> ToolCallContent:
    call_id = "".join(piece.id for piece in pieces)
    # A result names its call by the id, and not every model gives one.
    if not call_id or call_id in known_ids:
        call_id = f"call_{uuid.uuid4().hex[:12]}"
    known_ids.add(call_id)
    name = "".join(piece.name for piece in pieces)
    text = "".join(piece.arguments for piece in pieces)
    signature = "".join(piece.signature for piece in pieces) or None
    try:
        arguments = loads(text or "{}", parse_constant=_no_number)
        if isinstance(arguments, dict):
            return ToolCallContent(call_id, name, arguments, signature=signature)
    except (ValueError, RecursionError):
        pass
    return ToolCallContent(call_id, name, {}, invalid=text, signature=signature)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


def now_ms() -> int:
    """Return the time as messages and events carry it: Unix milliseconds."""
    return time.time_ns() // 1_000_000
