"""Claude, over the Anthropic Messages API: `--model anthropic:MODEL`."""

from __future__ import annotations

from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from agent_hooks.host.models.remote import Provider, Remote, open_remote


def create(argument: str) -> Remote:
    """Return the model called `argument`; raises `ModelError` without a key."""
    return open_remote(Provider("anthropic", "ANTHROPIC_BASE_URL", AnthropicModel, AnthropicProvider), argument)
