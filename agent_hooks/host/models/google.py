"""Gemini, over the Gemini API: `--model google:MODEL`."""

from __future__ import annotations

from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from agent_hooks.host.models.remote import Provider, Remote, open_remote


def create(argument: str) -> Remote:
    """Return the model called `argument`; raises `ModelError` without a key."""
    return open_remote(Provider("google", "GOOGLE_GEMINI_BASE_URL", GoogleModel, GoogleProvider), argument)
