"""OpenAI's chat completions, and all servers with the same API: `--model openai:MODEL`."""

from __future__ import annotations

from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from agent_hooks.host.models.remote import Provider, Remote, open_remote


def create(argument: str) -> Remote:
    """Return the model called `argument`; raises `ModelError` without a key, unless the server is your own."""
    provider = Provider("openai", "OPENAI_BASE_URL", OpenAIChatModel, OpenAIProvider, key_needed_elsewhere=False)
    return open_remote(provider, argument)
