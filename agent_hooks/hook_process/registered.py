"""The registrations of a hook, and the changes of its interceptors, in the form in which they go to the agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agent_hooks.dispatch.handlers import Handler, ToolMatcher, name_of
from agent_hooks.dispatch.points import ToolAfterOutput
from agent_hooks.hooks.api import HookAPI
from agent_hooks.isolation.exact import Packer, encode
from agent_hooks.isolation.protocol import Offered, Registrations, Stepping, Subscribed
from agent_hooks.values.content import ToolOutput

Pattern = str | tuple[str, int]


def registrations(api: HookAPI, numbers: Mapping[int, Handler]) -> Registrations:
    """Return everything that a hook has registered; `numbers`: the numbers of its handlers."""
    known = {id(handler): number for number, handler in numbers.items()}
    pack = Packer().pack
    return Registrations(
        [_subscribed(known[id(each)], each) for handlers in api.handlers.values() for each in handlers],
        [
            Stepping(
                each.id, each.name, name_of(each.handler), each.priority,
                _pattern(each.tool_matcher), _pattern(each.agent_matcher),
            )
            for each in api.interceptors
        ],
        [
            Offered(each.name, each.description, pack(dict(each.input_schema), f"the schema of {each.name}"))
            for each in api.tools
        ],
    )  # fmt: skip


def _subscribed(number: int, handler: Handler) -> Subscribed:
    return Subscribed(
        number,
        handler.event,
        handler.name,
        handler.priority,
        None if handler.tool is None else _patterns(handler.tool),
        handler.on_error,
        handler.file,
        handler.line,
    )


def _patterns(matcher: ToolMatcher) -> list[Pattern]:
    if isinstance(matcher, str | re.Pattern):
        return [_pattern(matcher)]
    return [_pattern(each) for each in matcher]


def _pattern(matcher: Any) -> Any:
    return (matcher.pattern, matcher.flags) if isinstance(matcher, re.Pattern) else matcher


def changed_fields(before: Struct, after: Struct) -> dict[str, Any]:
    """Return the packed fields of an output that an interceptor has changed; those of a result are `result.content` …

    Raises `InexactError` for a field that cannot cross as it is.
    """
    if isinstance(before, ToolAfterOutput) and isinstance(after, ToolAfterOutput):
        # The hook may have put anything there.
        result: object = after.result
        if not isinstance(result, ToolOutput):
            return {"result": Packer().pack(result, "output.result")}
        return {f"result.{name}": value for name, value in _changed(before.result, after.result, "output.result")}
    return dict(_changed(before, after, "output"))


def _changed(before: Struct, after: Struct, place: str) -> list[tuple[str, Any]]:
    found = []
    for name in before.__struct_fields__:
        value = Packer().pack(getattr(after, name), f"{place}.{name}")
        if encode(value) != encode(Packer().pack(getattr(before, name), f"{place}.{name}")):
            found.append((name, value))
    return found
