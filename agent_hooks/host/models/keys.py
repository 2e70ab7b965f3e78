"""The keys of models, from environment variables."""

from __future__ import annotations

import os

KEY_VARIABLES = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}


def find_key(provider: str) -> str | None:
    """Return the key for models of `provider`, from the first of its variables that holds one, or `None`."""
    for name in KEY_VARIABLES.get(provider, ()):
        if key := os.environ.get(name, "").strip():
            return key
    return None
