"""The objects in the input of a tool, each of which is read as an input.

Many tools wrap their arguments: `{"request": {"command": …}}`, also as JSON in a text.  An input with too many objects,
or with too deep or too long ones, is *odd*: it cannot be judged, so it is undecidable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from agent_hooks.guards.tools import Role, plain_tool, roles_of


class Odd(Exception):  # noqa: N818  # the guards turn it into a finding
    """The value of an argument is no text, no list of texts and no object that can be read; `args[0]` names it."""


class Limits(NamedTuple):
    """The parts of an input that are searched: levels of nesting, objects, and characters of JSON in a text."""

    depth: int
    objects: int
    json: int


FOLLOWED = Limits(8, 1000, 128 * 1024)
"""For values that a shell or a language runs; each is followed, which takes long."""
COMPARED = Limits(64, 20_000, 1024 * 1024)
"""For values that are compared with names."""
# Texts by their name, but an object under it holds arguments.
_HOLDERS = {"options", "edits", "message", "body"}


def objects_in(input: Mapping[str, Any], read: frozenset[Role], limits: Limits = FOLLOWED) -> list[Mapping[str, Any]]:
    """Return an input and the objects in it, also those that a text holds as JSON.  Raises `Odd` beyond the limits.

    `read`: the roles whose values are read where they stand, so that no object is searched in them.
    """
    found: list[Mapping[str, Any]] = []
    _gather(input, read, found, limits, 0)
    return found


def _gather(
    input: Mapping[str, Any], read: frozenset[Role], found: list[Mapping[str, Any]], limits: Limits, depth: int
) -> None:
    found.append(input)
    for key, value in input.items():
        if not isinstance(value, Mapping | list | tuple | str):
            continue
        if not roles_of(key).isdisjoint(read) and plain_tool(key) not in _HOLDERS:
            continue
        if isinstance(value, str):
            value = decoded(value, key, limits)
        for each in _mappings(value, key, limits, depth):
            if depth >= limits.depth or len(found) >= limits.objects:
                raise Odd(key)
            _gather(each, read, found, limits, depth + 1)


def _mappings(value: object, key: str, limits: Limits, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield an object, or the objects of a list and of the lists in it."""
    if isinstance(value, Mapping):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            if depth >= limits.depth and isinstance(each, Mapping | list | tuple):
                raise Odd(key)
            yield from _mappings(each, key, limits, depth + 1)


def decoded(text: str, key: str, limits: Limits) -> object:
    """Return the object or the list that a text holds as JSON, `None` when it holds none.

    `key`: the argument's name.  Raises `Odd` for a text beyond the limit.
    """
    if not _may_be_json(text):
        return None
    if len(text) > limits.json:
        raise Odd(key)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _may_be_json(text: str) -> bool:
    return text[:1] in ("{", "[") or (text[:1].isspace() and text.lstrip()[:1] in ("{", "["))
