"""Read-only JSON data: dicts and lists that refuse every change.

Many handlers get the payload of an event, and none may change it for the others.  The data are subclasses of dict and
list, not proxies, so that `json.dumps`, `match`, `isinstance(x, dict)` and `{**x}` work in hooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import NoneType
from typing import Any, Never

from agent_hooks.values.near import add_near_misses

READ_ONLY = (
    "event values are read-only; to change a tool's input, return Rewrite({**event.params, 'key': value}) from a "
    "before_tool_call handler; to change its result, return Replace(...) from a tool_result handler"
)

# Members of a mapping or sequence that is no dict, list or tuple, above which it counts as one without an end.
MOST_MEMBERS = 1_000_000


def _read_only(self: object, *_: object, **__: object) -> Never:
    raise TypeError(READ_ONLY)


# Python asks lists for these in its own code, so a miss of any of them is ordinary.
_OF_TEXTS = frozenset(name for name in dir(str) if not name.startswith("_")) - set(dir(list))
NO_TEXT = "the content of a message or a result is a list of blocks; its text is message.text"
"""The remedy for a hook that reads content as a text."""


def _refuse_text(self: object, name: str) -> Never:
    known = f"{type(self).__name__!r} object has no attribute {name!r}"
    raise AttributeError(f"{known}: {NO_TEXT}" if name in _OF_TEXTS else known, name=name, obj=self)


class FrozenDict(dict[str, Any]):
    """A dict that refuses every change; copies of it are plain dicts."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _read_only
    clear = pop = popitem = setdefault = update = _read_only

    def __reduce__(self) -> Any:
        return thaw, (dict(self),)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        # `copy` is imported already when this method is called; here and below.
        from copy import deepcopy

        return deepcopy(dict(self), memo)


class FrozenList(list[Any]):
    """A list that refuses every change; copies of it are plain lists."""

    __slots__ = ()
    __getattr__ = _refuse_text
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _read_only
    append = clear = extend = insert = pop = remove = reverse = sort = _read_only

    def __reduce__(self) -> Any:
        return thaw, (list(self),)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        from copy import deepcopy

        return deepcopy(list(self), memo)


# The arguments of the built-in tools, as far as a dict has no method of that name.
_ARGUMENTS = (
    *("command", "timeout", "path", "offset", "limit", "content", "oldText", "newText"),
    *("pattern", "exclude", "glob", "ignoreCase", "literal", "context"),
)
add_near_misses(FrozenDict, "input", {name: f'input["{name}"]' for name in _ARGUMENTS}, names=())

_LEAVES = frozenset({str, int, float, bool, NoneType, FrozenDict, FrozenList})
# Those that are the same frozen and thawed.
_SCALARS = frozenset({str, int, float, bool, NoneType})
_TEXTS = (str, bytes, bytearray, memoryview)
# A tuple is checked faster than a union, which `isinstance` would build each time.
_NESTED = (dict, list)


class Blocks(tuple[Any, ...]):
    """The content of a response: a tuple, whose errors name the remedy when a hook reads it as a text."""

    __slots__ = ()
    __getattr__ = _refuse_text


def freeze(value: Any) -> Any:
    """Return a read-only deep copy of JSON data; scalars, frozen data and foreign objects are returned as they are.

    Mappings, sequences and sets of any class count as JSON data and are copied, so that no reference outside can change
    them.
    """
    kind = type(value)
    if kind in _LEAVES:
        return value
    # The most common class passes the first test, and skips the second.
    if kind is dict or isinstance(value, Mapping):
        frozen: Any = FrozenDict(value if kind is dict else items_of(value))
        for item in frozen.values():
            if type(item) not in _LEAVES:
                break
        else:
            return frozen
        put: Any = dict.__setitem__
        items: Any = frozen.items()
    elif kind is list or (isinstance(value, Sequence | Set) and not isinstance(value, _TEXTS)):
        frozen = FrozenList(value if kind is list else _members(value))
        put = list.__setitem__
        items = enumerate(frozen)
    else:
        return value
    for key, item in items:
        if type(item) not in _LEAVES:
            put(frozen, key, freeze(item))
    return frozen


def items_of(value: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """Return the items of a mapping; of a dict, those that it really holds, although its class may say otherwise.

    Iterating over them raises `TypeError` for a mapping that does not end.
    """
    return dict.items(value) if isinstance(value, dict) else ((key, value[key]) for key in _members(value))


def _members(value: Iterable[Any]) -> Iterator[Any]:
    """Yield the members of a foreign class's value; raises `TypeError` when they do not end."""
    if isinstance(value, list):
        yield from list.__iter__(value)
        return
    for number, member in enumerate(value):
        if number == MOST_MEMBERS:
            raise TypeError(f"a {type(value).__name__} with more than {MOST_MEMBERS:,} members is taken for endless")
        yield member


def thaw(value: Any) -> Any:
    """Return a plain, changeable deep copy of JSON data; the opposite of `freeze`."""
    if isinstance(value, dict):
        plain: Any = {**value}
        items: Any = plain.items()
    elif isinstance(value, list):
        plain = list(value)
        items = enumerate(plain)
    else:
        return value
    for key, item in items:
        if isinstance(item, _NESTED):
            plain[key] = thaw(item)
    return plain


def frozen_and_plain(value: Any) -> tuple[Any, Any]:
    """Return `freeze(value)` and `thaw` of that."""
    if type(value) is dict:
        frozen = FrozenDict(value)
        for item in frozen.values():
            if type(item) not in _SCALARS:
                break
        else:
            # The input of most tools is flat, and is read once here: saves 0.2 of 8 µs.
            return frozen, {**frozen}
    frozen = freeze(value)
    return frozen, thaw(frozen)
