"""Compaction of a real session: the next request to the model, and a second compaction."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_hooks import MessageEntry, SessionError
from agent_hooks.host.model import ModelRequest, Piece, TextPiece
from agent_hooks.host.session import Session
from agent_hooks.values.content import text_of_content
from host.hosting import WatchedPuppet, stage

pytestmark = pytest.mark.anyio


class Clever(WatchedPuppet):
    """The puppet, which can summarise."""

    def __init__(self, summary: str) -> None:
        super().__init__()
        self.summary = summary

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        if "You summarise" in request.system[0]:
            yield TextPiece(self.summary)
            return
        async with aclosing(super().stream(request)) as pieces:
            async for piece in pieces:
                yield piece


async def test_after_a_compaction_the_model_is_sent_the_summary_and_what_was_kept(project: Path) -> None:
    """Word for word, calls with their results, in this session and when it is resumed."""
    on = stage(project, model=Clever("the summary"))
    async with on.host as host:
        await host.prompt("@bash one")
        await host.prompt("@bash two")
        said = tuple(entry.message for entry in host.entries if isinstance(entry, MessageEntry))
        await host.compact()
        before = on.events.of("session")[1]
        assert (*before.messages_to_summarize, *before.messages_to_keep) == said
        assert [each.role for each in before.messages_to_keep] == ["user", "assistant", "toolResult", "assistant"]
        assert "the summary" in text_of_content(host.messages[0].content)
        assert host.messages[1:] == before.messages_to_keep
        compacted = host.messages
        await host.prompt("three")
    assert on.model.requests[-1].messages[:-1] == compacted

    again = stage(project, session=Session.open(on.path, str(project)))
    async with again.host as host:
        await host.prompt("four")
    assert again.model.requests[-1].messages[: len(compacted)] == compacted


async def test_a_second_compaction_is_told_the_first_summary_and_summarises_what_that_kept(project: Path) -> None:
    """No message gets lost between the two."""
    on = stage(project, model=Clever("older"))
    async with on.host as host:
        await host.prompt("one")
        await host.prompt("two")
        await host.compact()
        kept = host.messages[1:]
        await host.prompt("three")
        on.model.summary = "newer"
        await host.compact()
        before = on.events.of("session")[-2]
        assert before.previous_summary == "older"
        assert (*before.messages_to_summarize, *before.messages_to_keep)[: len(kept)] == kept
        assert "newer" in text_of_content(host.messages[0].content)
        assert "older" not in str(host.messages)


async def test_an_empty_summary_is_a_failure_and_the_session_is_as_it_was(project: Path) -> None:
    """The compaction can be tried again."""
    on = stage(project, model=Clever("  \n"))
    async with on.host as host:
        await host.prompt("one")
        await host.prompt("two")
        before = (host.entries, host.messages, on.path.read_bytes())
        with pytest.raises(SessionError, match="gave an empty summary; the session is as it was"):
            await host.compact()
        assert (host.entries, host.messages, on.path.read_bytes()) == before
        on.model.summary = "better"
        assert (await host.compact()).entry is not None
