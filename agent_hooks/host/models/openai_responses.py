"""OpenAI's Responses API: `--model openai-responses:MODEL`.

OpenAI stores nothing: each request holds the whole conversation.
"""

from __future__ import annotations

from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider

from agent_hooks.host.models.remote import Access, Provider, Remote, open_remote


def create(argument: str) -> Remote:
    """Return the model called `argument`; raises `ModelError` without a key, unless the server is your own."""
    provider = Provider("openai-responses", "OPENAI_BASE_URL", _build, key_needed_elsewhere=False)
    return open_remote(provider, argument)


def _build(model: str, access: Access) -> OpenAIResponsesModel:
    provider = OpenAIProvider(api_key=access.key, base_url=access.url, http_client=access.client)
    settings = OpenAIResponsesModelSettings(openai_store=False)
    return OpenAIResponsesModel(model, provider=provider, settings=settings)
