"""OpenAI's Responses API: `--model openai-responses:MODEL`.

OpenAI stores nothing: each request holds the whole conversation.
"""

from __future__ import annotations

from functools import partial

from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider

from agent_hooks.host.models.remote import Provider, Remote, open_remote


def create(argument: str) -> Remote:
    """Return the model called `argument`; raises `ModelError` without a key, unless the server is your own."""
    model = partial(OpenAIResponsesModel, settings=OpenAIResponsesModelSettings(openai_store=False))
    provider = Provider("openai-responses", "OPENAI_BASE_URL", model, OpenAIProvider, key_needed_elsewhere=False)
    return open_remote(provider, argument)
