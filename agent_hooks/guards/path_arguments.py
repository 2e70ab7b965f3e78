"""The paths that the arguments of a call name, by the tables of `tools`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.guards.commands import commands_of
from agent_hooks.guards.objects import COMPARED, Odd, objects_in
from agent_hooks.guards.tools import Role, roles_of, use_of

_MOST_DEPTH = 8
# The roles whose values are read where they stand.
_OPENED: frozenset[Role] = frozenset(("path", "source", "variables", "text"))


class Named(Struct, frozen=True):
    """One path that a call names.

    `source`: of a file that is copied or moved away; `elsewhere`: other arguments name a repository or the like, in
    which the path may lie.
    """

    path: str
    source: bool = False
    elsewhere: bool = False


def paths_of(tool: str, input: Mapping[str, Any]) -> list[Named]:
    """Return the paths that the arguments of a call name.  Raises `Odd` if one cannot be read."""
    return list(_paths(input, strict=use_of(tool) == "file"))


def is_elsewhere(input: Mapping[str, Any]) -> bool:
    """Return whether an input names a repository or the like, in which its paths may lie."""
    return any("remote" in roles_of(key) for key in input)


def _paths(input: Mapping[str, Any], *, strict: bool) -> Iterator[Named]:
    outer = is_elsewhere(input)
    for at, each in enumerate(objects_in(input, _OPENED, COMPARED)):
        for named in _own_paths(each, strict=strict and (not at or "path" in each)):
            yield replace(named, elsewhere=True) if outer or is_elsewhere(each) else named


def _own_paths(input: Mapping[str, Any], *, strict: bool, depth: int = 0) -> Iterator[Named]:
    for key, value in input.items():
        roles = roles_of(key)
        if "path" not in roles and "source" not in roles:
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, str):
                if each:
                    yield Named(each, "source" in roles)
            elif isinstance(each, Mapping) and depth < _MOST_DEPTH and any("path" in roles_of(name) for name in each):
                yield from _own_paths(each, strict=strict, depth=depth + 1)
            elif each is not None and strict and not isinstance(each, bool):
                raise Odd(key)


def texts_of(tool: str, input: Mapping[str, Any], cwd: str = "") -> list[str]:
    """Return the commands or else the paths of a call, in which the patterns of own rules are searched.

    A tool whose use is not known has its `command` or its path.
    """
    try:
        found = [*commands_of(tool, input, cwd).run] or [each.path for each in paths_of(tool, input)]
    except Odd:
        return []
    if use_of(tool) not in ("shell", "code", "file"):
        command = input.get("command")
        return [command] if isinstance(command, str) else found[:1]
    return found
