"""The kinds of models; one module for each, imported when a model of that kind is opened."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from agent_hooks.errors import ModelError, did_you_mean
from agent_hooks.host.model import Model

MODELS = {
    "puppet": "agent_hooks.host.models.puppet",
    "script": "agent_hooks.host.models.script",
    "anthropic": "agent_hooks.host.models.anthropic",
    "openai": "agent_hooks.host.models.openai",
    "openai-responses": "agent_hooks.host.models.openai_responses",
    "google": "agent_hooks.host.models.google",
}


def open_model(name: str) -> Model:
    """Return the model called `KIND` or `KIND:ARGUMENT`; raises `ModelError` when it cannot be opened."""
    kind, _, argument = name.partition(":")
    if kind not in MODELS:
        raise ModelError(f"there is no model {name!r}{did_you_mean(kind, MODELS)}")
    try:
        member: Any = import_module(MODELS[kind])
    # The models behind an API import packages that may not be installed.
    except ImportError as exc:
        raise ModelError(f"{kind} models need pip install 'agent-hooks-runtime[models]' ({exc})") from None
    return member.create(argument)  # type: ignore[no-any-return]  # every member has `create`
