"""Read-only JSON data: dicts and lists that refuse every change.

Many handlers get the payload of an event, and none may change it for the others.  The data are subclasses of dict and
list, not proxies, so that `json.dumps`, `match`, `isinstance(x, dict)` and `{**x}` work in hooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import NoneType
from typing import Any, Never

READ_ONLY = (
    "event values are read-only; to change a tool's input, return Rewrite({**event.params, 'key': value}) from a "
    "before_tool_call handler; to change its result, return Replace(...) from a tool_result handler"
)


def _read_only(self: object, *_: object, **__: object) -> Never:
    raise TypeError(READ_ONLY)


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
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _read_only
    append = clear = extend = insert = pop = remove = reverse = sort = _read_only

    def __reduce__(self) -> Any:
        return thaw, (list(self),)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        from copy import deepcopy

        return deepcopy(list(self), memo)


_LEAVES = frozenset({str, int, float, bool, NoneType, FrozenDict, FrozenList})
# Those that are the same frozen and thawed.
_SCALARS = frozenset({str, int, float, bool, NoneType})
_TEXTS = (str, bytes, bytearray, memoryview)
# A tuple is checked faster than a union, which `isinstance` would build each time.
_NESTED = (dict, list)


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
        frozen: Any = FrozenDict(value)
        for item in frozen.values():
            if type(item) not in _LEAVES:
                break
        else:
            return frozen
        put: Any = dict.__setitem__
        items: Any = frozen.items()
    elif kind is list or (isinstance(value, Sequence | Set) and not isinstance(value, _TEXTS)):
        frozen = FrozenList(value)
        put = list.__setitem__
        items = enumerate(frozen)
    else:
        return value
    for key, item in items:
        if type(item) not in _LEAVES:
            put(frozen, key, freeze(item))
    return frozen


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
