"""The kinds of models; one module for each, imported when a model of that kind is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any

from agent_hooks.errors import ModelError, nearest
from agent_hooks.host.model import Model
from agent_hooks.values.content import Message, UserMessage, text_of_content

MODELS = {
    "puppet": "agent_hooks.host.models.puppet",
    "script": "agent_hooks.host.models.script",
    "anthropic": "agent_hooks.host.models.anthropic",
    "openai": "agent_hooks.host.models.openai",
    "openai-responses": "agent_hooks.host.models.openai_responses",
    "google": "agent_hooks.host.models.google",
}


# The models that play a prompt or a file, and read no prompts.
_PLAYERS = {"puppet", "script"}
_CALL = re.compile(r"\s*@([A-Za-z_][\w.-]*)(?:\s|$)")


def model_for(model: Model, messages: Sequence[Message], tools: Collection[str]) -> Model:
    """Return the model that answers the last prompt: the puppet if it begins with `@TOOL`, else `model`.

    Only a prompt of the person counts: a hook may pass on a text of others, which must not become a call.
    """
    if model.provider in _PLAYERS:
        return model
    prompts = (each for each in reversed(messages) if isinstance(each, UserMessage) and not each.is_context)
    last = next(prompts, None)
    if last is None or last.source is not None:
        return model
    call = _CALL.match(text_of_content(last.content))
    return open_model("puppet") if call is not None and call[1] in tools else model


def _of_a_provider(name: str) -> str:
    """Return the question whether a name without its provider was meant as one of a provider; else nothing."""
    # Imported here, because the table of the models takes long.
    from agent_hooks.host.prices import model_names

    provider = next((each for each in KEY_VARIABLES if name in model_names(each)), None)
    return f"; did you mean '{provider}:{name}'?" if provider else ""


def _of_a_kind(kind: str) -> str:
    near = nearest(kind, MODELS)
    return f"; did you mean {near!r}?" if near else f"; a model is KIND:NAME, with one of the kinds {', '.join(MODELS)}"


def open_model(name: str) -> Model:
    """Return the model called `KIND` or `KIND:ARGUMENT`; raises `ModelError` when it cannot be opened."""
    kind, _, argument = name.partition(":")
    if kind not in MODELS:
        raise ModelError(f"there is no model {name!r}{_of_a_provider(name) or _of_a_kind(kind)}")
    try:
        member: Any = import_module(MODELS[kind])
    # The models behind an API import packages that may not be installed.
    except ImportError as exc:
        raise ModelError(f"{kind} models need pip install 'agent-hooks-runtime[models]' ({exc})") from None
    return member.create(argument)  # type: ignore[no-any-return]  # every member has `create`


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
