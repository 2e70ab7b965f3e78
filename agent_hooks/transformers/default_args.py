"""`default_args`: arguments a tool gets when the model gave none, and text that is added to others.

Above: nothing imports it by name.  Below: nothing.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class Config(Struct, forbid_unknown_fields=True):
    """`set`: values for arguments that are absent; `append`: text added to an argument that is there."""

    set: dict[str, Any] = field(default_factory=dict)
    append: dict[str, str] = field(default_factory=dict)


def transform(tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Set what is absent, then append; text that an argument ends with already is not added again.

    Raises `TypeError` when the argument to append to is neither a text nor a list.
    """
    changed = {**config.get("set", {}), **tool_input}
    for name, text in config.get("append", {}).items():
        if name in changed:
            changed[name] = _with(changed[name], text, name)
    return changed


def _with(value: Any, text: str, name: str) -> Any:
    if isinstance(value, str):
        return value if value.endswith(text) else value + text
    if isinstance(value, list):
        return value if text in value else [*value, text]
    raise TypeError(f"append: {name} is {type(value).__name__}, and only a text or a list can be appended to")
