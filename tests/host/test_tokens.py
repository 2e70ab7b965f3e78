"""The running sum of a session's tokens: the right sum, at a cost that does not grow with the session."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_hooks.host.tokens
from agent_hooks import Compaction, HookContext, SessionEvent
from agent_hooks.host.exchanges import read_exchanges, summary_message
from agent_hooks.host.session import Session
from agent_hooks.host.tokens import TokenCounter, context_tokens, estimate_tokens, exchange_tokens
from agent_hooks.settings import CompactionSettings, Settings
from agent_hooks.values.content import (
    AssistantMessage,
    CompactionEntry,
    Entry,
    Message,
    TextContent,
    ToolCallContent,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from host.hosting import stage
from support import hook_on

TEXTS = st.sampled_from(["", "short", "a longer text of some words", "a text of many words " * 20])
IDS = st.sampled_from(["1", "2", "3"])
USAGE = st.sampled_from([None, Usage(input_tokens=300, output_tokens=20), Usage()])


def response(text: str, ids: list[str], usage: Usage | None) -> AssistantMessage:
    calls = [ToolCallContent(each, "bash", {"command": text}) for each in ids]
    return AssistantMessage(
        content=(TextContent(text), *calls), timestamp=0, provider="p", model="m", stop_reason="stop", usage=usage
    )


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(lambda text: UserMessage(content=text, timestamp=0), TEXTS),
    st.builds(response, TEXTS, st.lists(IDS, max_size=3), USAGE),
    st.builds(
        lambda text, call: ToolResultMessage(tool_call_id=call, tool_name="bash", content=text, timestamp=0), TEXTS, IDS
    ),
)


def sum_by_definition(entries: tuple[Entry, ...]) -> int:
    """Return the tokens of the conversation, measured as a whole."""
    compaction, exchanges = read_exchanges(entries)
    tokens = 0 if compaction is None else estimate_tokens(summary_message(compaction))
    behind = entries.index(compaction) if compaction is not None else 0
    for exchange in exchanges:
        usage = (exchange.message.usage if isinstance(exchange.message, AssistantMessage) else None) or Usage()
        if (reported := usage.input_tokens + usage.output_tokens) and exchange.index > behind:
            tokens = reported + sum(map(estimate_tokens, exchange.results.values()))
        else:
            tokens += exchange_tokens(exchange)
    return tokens


@given(st.lists(st.one_of(MESSAGES, st.integers(-1, 30)), max_size=25), st.sets(st.integers(0, 25)))
def test_a_running_sum_is_the_sum_of_the_whole_conversation(
    steps: list[Message | int], counted_after: set[int]
) -> None:
    """Calls, results and compactions may come in any order, and the sum may be asked for at any time."""
    session = Session(cwd="/")
    counter = TokenCounter()
    for number, step in enumerate(steps):
        if isinstance(step, int):
            session.append(
                CompactionEntry(
                    timestamp=f"2026-{number}", summary="s" * number, first_kept_entry_index=step, tokens_before=1
                )
            )
        else:
            session.add_message(step)
        if number in counted_after:
            assert counter.count(session) == sum_by_definition(session.entries)
    assert counter.count(session) == context_tokens(session.entries) == sum_by_definition(session.entries)


def test_another_session_is_measured_as_a_whole() -> None:
    """After a switch or a branch, nothing of the session before it counts."""
    one, other = Session(cwd="/"), Session(cwd="/")
    one.add_message(UserMessage(content="x" * 400, timestamp=0))
    other.add_message(UserMessage(content="x" * 40, timestamp=0))
    counter = TokenCounter()
    assert [counter.count(each) for each in (one, other, one)] == [100, 10, 100]


@pytest.mark.anyio
async def test_the_cost_of_a_turn_does_not_grow_with_the_session(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each turn only the messages since the turn before are measured, also after a compaction."""
    measured: list[Message] = []

    def estimate(message: Message) -> int:
        measured.append(message)
        return estimate_tokens(message)

    async def compact(event: SessionEvent, ctx: HookContext) -> Compaction | None:
        return Compaction("short", len(event.entries), 1) if event.reason == "before_compact" else None

    monkeypatch.setattr(agent_hooks.host.tokens, "estimate_tokens", estimate)
    settings = Settings(compaction=CompactionSettings(threshold_tokens=1_000_000))
    on = stage(project, hook_on("session", compact), settings=settings)
    costs: list[int] = []
    async with on.host as host:
        for number in range(60):
            measured.clear()
            await host.prompt("@bash ls")
            costs.append(len(measured))
            if number == 40:
                await host.compact()
    # A prompt adds a user message, a response with a call, its result and the last response; a call is measured twice,
    # without and with its result.
    assert max(costs[1:]) <= 6, costs
