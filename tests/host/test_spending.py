"""The tokens and the money of a session."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from msgspec.structs import replace

from agent_hooks.host.prices import Spending, Spent
from agent_hooks.values.content import AssistantMessage, CompactionEntry, Entry, MessageEntry, Usage


class Log:
    """A session that grows."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def since(self, index: int) -> Sequence[Entry]:
        """Return the entries from an index on."""
        return self.entries[index:]

    def add(self, provider: str, model: str, usage: Usage) -> None:
        """Add a response."""
        message = AssistantMessage(content="x", timestamp=0, provider=provider, model=model, usage=usage)
        self.entries.append(MessageEntry(message=message, timestamp="2026-01-01T00:00:00Z"))


def one_cent(provider: str, model: str, usage: Usage) -> Decimal | None:
    """Return the same price for every response of one model."""
    return Decimal("0.01") if model == "dear" else None


def test_responses_are_added_up_once() -> None:
    """Each call adds the new responses only; another session begins at zero."""
    log, spending = Log(), Spending()
    assert spending.of(log, one_cent) == Spent()
    log.add("p", "dear", Usage(input_tokens=10, output_tokens=5))
    log.add("p", "unknown", Usage(input_tokens=1))
    assert spending.of(log, one_cent) == spending.of(log, one_cent) == Spent(16, Decimal("0.01"))
    log.add("p", "dear", Usage(input_tokens=1))
    assert spending.of(log, one_cent) == Spent(17, Decimal("0.02"))
    assert spending.of(Log(), one_cent) == Spent()


def test_a_price_that_is_known_later_counts_for_all_responses() -> None:
    """The table of prices is loaded while the agent works."""
    log, spending = Log(), Spending()
    log.add("p", "dear", Usage(input_tokens=10))
    assert spending.of(log, lambda *_: None) == Spent(10)
    spending.again()
    assert spending.of(log, one_cent) == Spent(10, Decimal("0.01"))


def test_the_request_for_a_summary_counts_too() -> None:
    """A summary of a hook cost nothing here."""
    log, spending = Log(), Spending()
    made = CompactionEntry(
        timestamp="2026-01-01T00:00:00Z",
        summary="s",
        first_kept_entry_index=1,
        tokens_before=9,
        provider="p",
        model="dear",
        usage=Usage(input_tokens=7),
    )
    log.entries += [made, replace(made, provider="", model="", usage=None, from_hook=True)]
    assert spending.of(log, one_cent) == Spent(7, Decimal("0.01"))
