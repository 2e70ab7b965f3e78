"""`default_args`: sets arguments that the model left out, and appends text to arguments that it gave."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class Config(Struct, forbid_unknown_fields=True):
    """`set`: values for arguments that are absent; `append`: texts to append to arguments that are given."""

    set: dict[str, Any] = field(default_factory=dict)
    append: dict[str, str] = field(default_factory=dict)


def transform(tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Set the absent arguments, then append; an argument that already ends with the text stays.

    Raises `TypeError` when the argument to append to is neither a text nor a list.
    """
    changed = {**config.get("set", {}), **tool_input}
    for name, text in config.get("append", {}).items():
        if name in changed:
            changed[name] = _appended(changed[name], text, name)
    return changed


def _appended(value: Any, text: str, name: str) -> Any:
    if isinstance(value, str):
        return value if value.endswith(text) else value + text
    if isinstance(value, list):
        return value if text in value else [*value, text]
    raise TypeError(f"append: {name} is {type(value).__name__}, and only a text or a list can be appended to")
