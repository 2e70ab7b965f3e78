"""The words of an agent: the names of its tools and arguments, and our names for them, and the fields of its payloads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks.errors import AgentHooksError, describe, shown

# What some programs put before and after the JSON of a payload, as in `server.client`.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PADDING = b"\0 \t\r\n"


class BridgeError(AgentHooksError):
    """A payload or a settings file of the other agent does not have the form that its protocol defines."""


def bare(payload: bytes) -> bytes:
    """Return a payload without a byte-order mark before its JSON, and without blanks and NUL after it."""
    return payload.removeprefix(_BYTE_ORDER_MARK).rstrip(_PADDING)


def parse_payload(raw: bytes) -> Any:
    """Return the data of a payload.  Raises `BridgeError`."""
    raw = bare(raw)
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


# The argument of each of our tools that gates read, which must be a text.
_TEXTS = {"bash": "command", "write": "path", "edit": "path", "read": "path"}


class ToolWords(Struct, frozen=True):
    """A tool's name and the names of its arguments, theirs and ours.

    `arguments`: their name → our name; an argument that is not in it keeps its name.
    `milliseconds`: the arguments that are milliseconds for them and seconds for us.
    `needs`: an argument, with the same name on both sides; a call without it is no call of our tool.
    `stays_open`: the agent may type into a command of this tool while it runs, and no hook gets that text.
    """

    theirs: str
    ours: str
    arguments: Mapping[str, str] = {}
    milliseconds: tuple[str, ...] = ()
    needs: str = ""
    stays_open: bool = False


def to_ours(tools: Sequence[ToolWords], name: str, input: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a tool's name and input in our vocabulary.  A tool that the vocabulary lacks stays as it is.

    Raises `BridgeError` for an input in which two arguments would become one, and for a command or a path that is no
    text: a gate that looks for a word there would find none.
    """
    words = _words(tools, name)
    if words is None or words.needs not in ("", *input):
        return name, dict(input)
    ours: dict[str, Any] = {}
    for key, value in input.items():
        word = words.arguments.get(key, key)
        if word in ours:
            raise BridgeError(f"{name}: tool_input gives {word!r} twice, under two names")
        if word == _TEXTS.get(words.ours) and not isinstance(value, str | None):
            raise BridgeError(f"{name}: {key} must be a text, not {shown(value)}")
        ours[word] = value / 1000 if key in words.milliseconds and _is_number(value) else value
    return words.ours, ours


def to_theirs(tools: Sequence[ToolWords], name: str, input: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input of ours in the vocabulary of their tool `name`: the inverse of `to_ours`."""
    words = _words(tools, name)
    if words is None or words.needs not in ("", *input):
        return dict(input)
    back = {ours: theirs for theirs, ours in words.arguments.items()}
    native: dict[str, Any] = {}
    for key, value in input.items():
        word = back.get(key, key)
        native[word] = round(value * 1000) if word in words.milliseconds and _is_number(value) else value
    return native


def our_name(tools: Sequence[ToolWords], name: str) -> str:
    """Return our name of their tool, or their name if the vocabulary lacks it."""
    words = _words(tools, name)
    return name if words is None else words.ours


def stays_open(tools: Sequence[ToolWords], name: str) -> bool:
    """Return whether the agent may type into a command of their tool `name` while it runs; see `ToolWords`."""
    words = _words(tools, name)
    return words is not None and words.stays_open


def _words(tools: Sequence[ToolWords], name: str) -> ToolWords | None:
    """Return the row of a tool.  A name in other letters or with blanks, and our own name, stand for it too.

    A gate of the tool would not judge the call otherwise, and an agent may run the tool all the same.
    """
    # A loop takes half the time of a generator, and each call comes here.
    for words in tools:
        if words.theirs == name:
            return words
    plain = name.strip().casefold()
    return next((words for words in tools if plain in (words.theirs.casefold(), words.ours)), None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
