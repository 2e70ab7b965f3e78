"""A judge of replies for the tests of bridges of commands: it knows only the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agent_hooks.bridges.base.happenings import CallAsked, Happening, PermissionAsked
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.tables import EVENT, VALUE


def check_reply(bridge: CommandBridge, event: Happening, answer: Verdict) -> dict[str, Any]:
    """Return the reply to an event, after a check of all that holds for each agent; raises `AssertionError`.

    The reply is one JSON object in UTF-8, has only keys of the templates of its row, and has the
    words of an allow only if the verdict allows.  A block is in it, in the agent's words, where the agent takes one.
    """
    reply = bridge.encode(event, answer)
    assert reply.exit_code in (0, 2)
    found = msgspec.json.decode(reply.stdout.encode())
    assert isinstance(found, dict)
    says = dict(bridge.command_row(event.name).says)
    decides = isinstance(event, CallAsked | PermissionAsked)
    if not (decides and answer.allow and answer.block is None and answer.ask is None):
        says.pop("allow", None)
    if not (isinstance(event, CallAsked) and answer.input is not None and answer.block is None):
        says.pop("input", None)
    if answer.block is not None and isinstance(event, CallAsked):
        says.pop("ask", None)
    wrong = list(_wrong(found, list(says.values()), event.name))
    assert not wrong, f"{event.name}: no template has {wrong}: {found}"
    if answer.block is not None and "block" in says:
        assert holds(found, says["block"], event.name), f"{event.name}: the block is missing: {found}"
    return found


def _wrong(value: Any, templates: list[Any], event: str) -> Iterator[Any]:
    """Yield each part of a reply that no template has."""
    if any(each is VALUE or (each is EVENT and value == event) for each in templates):
        return
    if isinstance(value, dict):
        for key, each in value.items():
            inner = [template[key] for template in templates if isinstance(template, Mapping) and key in template]
            yield from _wrong(each, inner, event) if inner else [{key: each}]
    elif value not in templates:
        yield value


def holds(value: Any, template: Any, event: str) -> bool:
    """Return whether a reply has all of a template, with a text for its value."""
    if template is VALUE:
        return isinstance(value, str) and bool(value.strip())
    if template is EVENT:
        return bool(value == event)
    if isinstance(template, Mapping):
        return isinstance(value, dict) and all(holds(value.get(key), each, event) for key, each in template.items())
    return bool(value == template)
