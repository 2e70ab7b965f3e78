"""The table of prices that comes with the extra `models`."""

from __future__ import annotations

import pytest

from agent_hooks.cli.interactive.candidates import models, models_at_hand
from agent_hooks.errors import ModelError
from agent_hooks.host.models import open_model
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


def test_a_model_without_its_provider_is_named_with_it() -> None:
    """A person may type the name that the provider gives it."""
    with pytest.raises(ModelError, match=r"there is no model 'gpt-5'; did you mean 'openai:gpt-5'\?"):
        open_model("gpt-5")


@pytest.mark.anyio
async def test_a_part_of_a_name_completes_to_a_model_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person need not know its provider."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    assert "anthropic:claude-sonnet-4-5" in [each.text for each in await models("sonnet-4")]
    assert await models("openai:no-such-name") == []


def test_a_person_chooses_between_the_models_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the providers with a key; models with a small window, and those of other makers, are left out."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert models_at_hand() == ["puppet"]
    monkeypatch.setenv("GOOGLE_API_KEY", "a-key")
    found = models_at_hand()
    assert "google:gemini-2.5-flash" in found
    assert {name.partition(":")[0] for name in found} == {"puppet", "google"}
    assert not [name for name in found if "claude" in name or "embedding" in name]


@pytest.mark.anyio
async def test_the_models_of_a_provider_are_completed() -> None:
    """Those of the table, and the providers by themselves."""
    assert "anthropic:claude-sonnet-4-5" in [each.text for each in await models("anthropic:claude-s")]
    assert [each.text for each in await models("goo")] == ["google:"]
