"""Errors for names that are nearly ours: `event.turnIndex` says `event.turn_index`.

A near miss is a descriptor of its class, which raises when it is read or set.  So the fields of a class are read as fast
as without it; a `__getattr__` would make each read of an event's field slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from agent_hooks.errors import HookUsageError


class NearMiss:
    """A name that a class does not have, with the error for its reader."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(self.text)

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise AttributeError(self.text)


def camel_case(name: str) -> str:
    """Return `tool_call_id` as `toolCallId`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def add_near_misses(kind: type, where: str, others: Mapping[str, str] = {}, names: Iterable[str] | None = None) -> None:
    """Give a class a near miss for each of its names in camelCase, and for the names of `others`.

    `where`: the variable in hooks, `event` for example; `others`: names, each with the remedy; `names`: ours, by default
    all of the class.
    """
    ours = [name for name in (vars(kind) if names is None else names) if "_" in name.strip("_")]
    known = {camel_case(name): f"{where}.{name}" for name in ours if not name.startswith("_")} | {**others}
    for theirs, remedy in known.items():
        if not hasattr(kind, theirs):
            setattr(kind, theirs, NearMiss(f"there is no {where}.{theirs}: write {remedy}"))
    if "__dir__" not in vars(kind):
        setattr(kind, "__dir__", _without_near_misses)  # noqa: B010  # for completion in an interpreter


def _without_near_misses(self: object) -> list[str]:
    found: Any = {name: value for each in reversed(type(self).__mro__) for name, value in vars(each).items()}
    hidden = {name for name, value in found.items() if isinstance(value, NearMiss) or value is _refuse_keys}
    return [name for name in object.__dir__(self) if name not in hidden]


def refuse_access_by_key(kind: type) -> None:
    """Give a class of values the errors for `value["field"]` and `{**value}`; type checkers go on to reject both."""
    setattr(kind, "__getitem__", _refuse_item)  # noqa: B010  # see above
    setattr(kind, "keys", _refuse_keys)  # noqa: B010  # as above


def _refuse_item(self: object, key: object) -> NoReturn:
    """Raise the error for `value["field"]`, as `__getitem__` of a value."""
    kind = type(self)
    near = f".{key}" if isinstance(key, str) and hasattr(kind, key) else ""
    if not near and isinstance(key, str):
        near_miss = next((vars(each)[key] for each in kind.__mro__ if key in vars(each)), None)
        if isinstance(near_miss, NearMiss):
            raise HookUsageError(near_miss.text)
        near = next((f".{name}" for name in dir(self) if camel_case(name) == key), "")
    write = f"write {near} in place of [{key!r}]" if near else f"its fields are {_fields(kind)}"
    raise HookUsageError(f"{kind.__name__} is a value, not a mapping: {write}")


def _refuse_keys(self: object) -> NoReturn:
    """Raise the error for `{**value}`, as `keys` of a value."""
    kind = type(self)
    raise HookUsageError(
        f"{kind.__name__} is a value, not a mapping: its fields are {_fields(kind)}; "
        "to change one in a copy, write msgspec.structs.replace(value, field=…)"
    )


def _fields(kind: type) -> str:
    return ", ".join(f".{name}" for name in getattr(kind, "__struct_fields__", ())) or "none"
