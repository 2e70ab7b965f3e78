"""Claude, over the Anthropic Messages API: `--model anthropic:MODEL`."""

from __future__ import annotations

from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from agent_hooks.host.models.remote import Access, Provider, Remote, open_remote


def create(argument: str) -> Remote:
    """Return the model called `argument`; raises `ModelError` without a key."""
    return open_remote(Provider("anthropic", "ANTHROPIC_BASE_URL", _build), argument)


def _build(model: str, access: Access) -> AnthropicModel:
    provider = AnthropicProvider(api_key=access.key, base_url=access.url, http_client=access.client)
    return AnthropicModel(model, provider=provider)
