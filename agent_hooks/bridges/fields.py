"""The fields of a payload, read with a check of their kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base import BridgeError
from agent_hooks.errors import shown


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
