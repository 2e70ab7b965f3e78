"""Pieces become one response."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from agent_hooks.host.model import (
    EndPiece,
    ModelRequest,
    NoticePiece,
    Piece,
    TextPiece,
    ThinkingPiece,
    ToolCallPiece,
    collect,
)
from agent_hooks.values.content import TextContent, ThinkingContent, ToolCallContent, Usage

pytestmark = pytest.mark.anyio


class Recited:
    """A model that answers with these pieces."""

    provider = id = "recited"

    def __init__(self, *pieces: Piece) -> None:
        self._pieces = pieces

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Yield the pieces."""
        for piece in self._pieces:
            yield piece


async def test_blocks_keep_the_order_in_which_they_began() -> None:
    """Thoughts between texts stay between them, each with its own signature; notices are not part of the response."""
    model = Recited(
        ThinkingPiece("a", 0),
        ThinkingPiece("", 0, "signed a"),
        TextPiece("one "),
        TextPiece("two"),
        ThinkingPiece("b", 2, "signed b"),
        NoticePiece("hm"),
        TextPiece("three"),
        ToolCallPiece(4, '{"x":', "id4", "ls"),
        ToolCallPiece(5, "{}", "id4", "find"),
        ToolCallPiece(4, " 1}", signature="signed call"),
        EndPiece("stop", Usage(output_tokens=1)),
    )
    notices: list[str] = []
    message = await collect(model, ModelRequest(system=(), messages=(), tools=()), lambda _: None, notices.append)
    first, second = message.tool_calls
    assert message.content == (
        ThinkingContent("a", "signed a"),
        TextContent("one two"),
        ThinkingContent("b", "signed b"),
        TextContent("three"),
        ToolCallContent("id4", "ls", {"x": 1}, signature="signed call"),
        second,
    )
    assert (first.id != second.id, second.name) == (True, "find")
    assert (message.stop_reason, message.usage, notices) == ("tool_use", Usage(output_tokens=1), ["hm"])
