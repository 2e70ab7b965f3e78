"""Any value as JSON text, and the spelling of keys in JSON."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agent_hooks.errors import text_of

# Levels of nesting that are written after the encoder has failed.
_DEEPEST = 100


def to_json(value: object) -> bytes:
    """Return `value` as JSON; parts that are no JSON (a path, half a surrogate pair, a cycle) become text.

    So a record is never lost, and a run never ends, because of an odd value of a tool or a hook.
    """
    try:
        return msgspec.json.encode(value, enc_hook=text_of)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return msgspec.json.encode(_plain(value, 0))


def camel(key: str) -> str:
    """Return a name such as `hook_timeout` as JSON spells it: `hookTimeout`; other underscores stay."""
    return re.sub(r"(?<=[a-z0-9])_([a-z])", lambda match: match[1].upper(), key)


def _plain(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not _has_digits(value):
        return f"<a number of {int.bit_length(value):,} bits>"
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {config.tag_field: config.tag} if config.tag_field else {}
        fields = {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)}
        return _plain(tag | {name: each for name, each in fields.items() if each is not None}, depth)
    if isinstance(value, dict):
        return {_plain(text_of(key), 0): _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each, depth + 1) for each in value]
    return _plain(text_of(value), 0)


def _has_digits(value: int) -> bool:
    """Tell whether Python writes the digits of a number, which it refuses above some thousands of them."""
    try:
        int.__repr__(value)
    except ValueError:
        return False
    return True
