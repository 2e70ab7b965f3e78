"""The prices of responses and the windows of models, from the table in the package genai-prices; no server is asked.

The import of the package takes long, so a thread makes it, and until then no price is known.  `Spending` adds up the
tokens and the money of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from agent_hooks.host.tokens import Log
from agent_hooks.values.content import AssistantMessage, CompactionEntry, MessageEntry, Usage

# Our names of the providers that have prices → the names in the table.
_PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "openai-responses": "openai", "google": "google"}
# Models of others that the provider sells by another API than ours.
_FOREIGN = {"google": "claude-"}


class Prices:
    """The table of prices; empty until `load`, and without the package or for a model that it does not know."""

    def __init__(self) -> None:
        self._table: Any = None

    def load(self) -> bool:
        """Import the table, in whichever thread; return whether it is there."""
        try:
            import genai_prices
        # It comes with the extra `models`.
        except ImportError:
            return False
        self._table = genai_prices
        return True

    def of(self, provider: str, model: str, usage: Usage) -> Decimal | None:
        """Return the price of one response in US dollars, `None` when it is not known."""
        if self._table is None or provider not in _PROVIDERS:
            return None
        counts = self._table.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        try:
            found = self._table.calc_price(counts, model, provider_id=_PROVIDERS[provider])
        # The table does not know the model, or the provider's counts contradict each other.
        except (LookupError, ValueError):
            return None
        return Decimal(found.total_price)

    def window(self, provider: str, model: str) -> int | None:
        """Return the window of a model in tokens, `None` when it is not known."""
        return None if self._table is None else window_of(provider, model)

    def names(self, provider: str, window: int) -> list[str]:
        """Return the models of a provider of the table that are not deprecated, and take so many tokens at least."""
        found = self._table.data_snapshot.get_snapshot().providers
        models = [model for each in found if each.id == provider for model in each.models if not model.deprecated]
        return sorted(
            model.id
            for model in models
            if (model.context_window or 0) >= window and not model.id.startswith(_FOREIGN.get(provider, "\0"))
        )


def window_of(provider: str, model: str) -> int | None:
    """Return the window of a model in tokens, `None` when the table does not know it; raises `ImportError` without it."""
    # Imported here, because this list takes a while to load.
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, _PROVIDERS.get(provider, provider), None)
    # A model of the person's own server, or a new one.
    except LookupError:
        return None
    return found.context_window


def model_names(provider: str, window: int = 0) -> list[str]:
    """Return the models of a provider that the table knows, without those that it calls deprecated.

    `window`: the tokens that a model takes at least; where the table does not know them, the model counts as a small one.
    """
    prices = Prices()
    if provider not in _PROVIDERS or not prices.load():
        return []
    return prices.names(_PROVIDERS[provider], window)


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
