"""The tokens and the money of a session, as a running sum over its responses."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from agent_hooks.host.tokens import Log
from agent_hooks.values.content import AssistantMessage, CompactionEntry, MessageEntry, Usage


class Spent(NamedTuple):
    """The tokens of all responses of a session, summaries too, and their price in US dollars.

    `money`: `None` when no response has a known price.
    """

    tokens: int = 0
    money: Decimal | None = None


PriceOf = Callable[[str, str, Usage], Decimal | None]
"""Returns the price of one response in US dollars, by provider and model; `None` when it is not known."""


class Spending:
    """Adds up the responses of one session after another; each call looks only at the new entries."""

    def __init__(self) -> None:
        self._log: Log | None = None
        self._next = 0
        self._spent = Spent()

    def of(self, log: Log, price: PriceOf) -> Spent:
        """Return the sum for the session in `log`; another log than the last one is added up from its beginning."""
        if log is not self._log:
            self._log, self._next, self._spent = log, 0, Spent()
        entries = log.since(self._next)
        self._next += len(entries)
        for entry in entries:
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                self._add(entry.message, price)
            elif isinstance(entry, CompactionEntry):
                self._add(entry, price)
        return self._spent

    def again(self) -> None:
        """Add up from the beginning at the next call, because the prices are known now."""
        self._log = None

    def _add(self, response: AssistantMessage | CompactionEntry, price: PriceOf) -> None:
        if response.usage is None:
            return
        tokens, money = self._spent
        paid = price(response.provider, response.model, response.usage)
        total = money if paid is None else (money or Decimal()) + paid
        self._spent = Spent(tokens + response.usage.total_tokens, total)
