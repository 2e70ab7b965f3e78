"""The table of prices that comes with the extra `models`."""

from __future__ import annotations

import pytest

from agent_hooks.cli.interactive.candidates import models
from agent_hooks.host.prices import Prices, model_names
from agent_hooks.values.content import Usage


def test_the_table_knows_models_and_their_prices() -> None:
    """A model that it does not know, and one without a price, cost nothing that is shown."""
    prices, usage = Prices(), Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    assert prices.of("anthropic", "claude-sonnet-4-5", usage) is None
    assert prices.load()
    cost = prices.of("anthropic", "claude-sonnet-4-5", usage)
    assert cost is not None
    assert cost > 1
    assert prices.of("openai-responses", "gpt-5", usage) == prices.of("openai", "gpt-5", usage)
    assert prices.of("anthropic", "no-such-model", usage) is None
    assert prices.of("puppet", "puppet", usage) is None
    assert prices.of("google", "gemini-2.5-pro", Usage(input_tokens=1, output_tokens=1, cache_read_tokens=5)) is None
    assert "claude-sonnet-4-5" in model_names("anthropic")
    assert model_names("puppet") == []


@pytest.mark.anyio
async def test_the_models_of_a_provider_are_completed() -> None:
    """Those of the table, and the providers by themselves."""
    assert "anthropic:claude-sonnet-4-5" in [each.text for each in await models("anthropic:claude-s")]
    assert [each.text for each in await models("goo")] == ["google:"]
