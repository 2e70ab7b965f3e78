"""Values as JSON text, whatever is in them.  Above: everything that writes.  Below: errors."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_hooks.errors import text_of

_DEEPEST = 100  # levels of nesting that are written when the encoder itself gave up


def to_json(value: object) -> bytes:
    """Return `value` as JSON; what is no JSON (a path, half a surrogate pair, a cycle) becomes text.

    A record must not be lost, and a run not end, because a tool or a hook put an odd value into it.
    """
    try:
        return msgspec.json.encode(value, enc_hook=text_of)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return msgspec.json.encode(_plain(value, 0))


def _plain(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
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
