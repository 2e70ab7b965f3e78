"""Read a payload: its JSON, and its fields with a check of their kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_hooks.errors import AgentHooksError, describe, shown


class BridgeError(AgentHooksError):
    """A payload or a settings file of the other agent does not have the form that its protocol defines."""


def parse_payload(raw: bytes | str) -> Any:
    """Return the data of a payload's text.  Raises `BridgeError`."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        try:
            # This decoder is slower, and accepts half of a surrogate pair.
            return json.loads(raw)
        except (ValueError, RecursionError) as exc:
            raise BridgeError(f"the payload is no JSON: {describe(exc)}") from None


def text_field(payload: Mapping[str, Any], key: str, default: Any = ...) -> Any:
    """Return a text of a payload, or the default if there is none.  Raises `BridgeError` for any other value."""
    value = payload.get(key)
    if isinstance(value, str):
        return value
    if value is None and default is not ...:
        return default
    raise BridgeError(f"{key} must be a text, not {shown(value)}")


def object_field(payload: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return an object of a payload.  Raises `BridgeError` for any other value."""
    value = payload.get(key)
    if isinstance(value, dict):
        return value
    raise BridgeError(f"{key} must be a JSON object, not {shown(value)}")
