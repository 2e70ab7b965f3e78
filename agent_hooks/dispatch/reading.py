"""Reads the value that a handler returned: as answers, or as a mistake whose text shows the right form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import to_builtins

from agent_hooks.dispatch.table import SPECS, EventSpec
from agent_hooks.errors import nearest, shown
from agent_hooks.values.answers import AddContext, Answer, Ask, Block, Cancel, Continue, Replace, Rewrite, Stop
from agent_hooks.values.content import CompactionEntry
from agent_hooks.values.frozen import freeze, items_of
from agent_hooks.values.spellings import remedy
from agent_hooks.values.wire import camel

# The answer that each key of a mapping form stands for.
_KEYS: dict[str, type[Answer]] = {
    "params": Rewrite,
    "block": Block,
    "ask": Ask,
    "stop": Stop,
    "addContext": AddContext,
    "add_context": AddContext,
    "content": Replace,
    "cancel": Cancel,
    "continue": Continue,
}


def misplaced(spec: EventSpec, answer: object) -> str:
    """Return the events whose handlers may give this answer, as a sentence part; empty for one that fits or is none."""
    if isinstance(answer, dict):
        kind = next((kind for key, kind in _KEYS.items() if key in answer), None)
    else:
        kind = type(answer) if isinstance(answer, Answer) else None
    if kind is None or issubclass(kind, spec.answers):
        return ""
    events = dict.fromkeys(name.partition(":")[0] for name, row in SPECS.items() if issubclass(kind, row.answers))
    if not events:
        return ""
    *others, last = events
    names = f"{', '.join(others)} or {last}" if others else last
    return f"; {_with_article(kind.__name__)} belongs in {_with_article(names)} handler"


def _respelled(spec: EventSpec, answer: Mapping[Any, Any]) -> str:
    """Return the remedy for a key of another agent, or one that is nearly ours.

    A mapping of another class is not read, as it may have no end.
    """
    keys = [*dict.keys(answer)] if isinstance(answer, dict) else []
    known = () if spec.wire is None else spec.wire.__struct_encode_fields__
    for key in keys:
        if key == "message" and {"block", "cancel"} & {*keys}:
            return '; write "reason" in place of "message"'
        found = remedy('return {"', key)
        if found.startswith("; write return Block(") and Continue in spec.answers:
            return "; write return Continue(text)"
        if found:
            return found
    unknown = [key for key in keys if isinstance(key, str) and camel(key) not in known and key not in _KEYS]
    near = next(filter(None, (nearest(camel(key), known) for key in unknown)), None)
    return f'; did you mean "{near}"?' if near else ""


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'Aa' else 'a'} {name}"


def _wire_keys(answer: Mapping[Any, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, value in items_of(answer):
        if not isinstance(key, str):
            raise TypeError(f"keys of an answer are strings, not {shown(key)}")
        if (wire_key := camel(key)) in keys:
            raise ValueError(f"{wire_key!r} is there twice, once in each spelling")
        if wire_key == "compactionEntry" and isinstance(value, CompactionEntry):
            value = to_builtins(value)
        if wire_key == "compactionEntry" and isinstance(value, Mapping):
            # These keys are ours too; the keys inside of params, content and details are not.
            value = _wire_keys(value)
        # A copy, because a foreign class may have no end, which the conversion would not notice.
        keys[wire_key] = freeze(value)
    return keys


def read_answer(name: str, spec: EventSpec, answer: Any) -> list[Answer]:
    """Turn the value that a handler of `name` returned into answers; an empty list is "no opinion".

    Raises `TypeError` that shows the right form when `answer` has the wrong shape: on a gate that blocks.
    """
    if isinstance(answer, spec.answers):
        return [answer]
    if isinstance(answer, Mapping) and spec.wire is not None:
        try:
            return msgspec.convert(_wire_keys(answer), spec.wire, strict=True).read()
        except (msgspec.ValidationError, ValueError, TypeError) as exc:
            hint = _respelled(spec, answer) or misplaced(spec, answer)
            raise TypeError(f"wrong answer {shown(answer)}: {exc}; return {spec.forms} or None{hint}") from None
    hint = misplaced(spec, answer)
    if not spec.answers:
        raise TypeError(f"{name} handlers return nothing, not {shown(answer)}; the value is ignored{hint}")
    raise TypeError(f"wrong answer {shown(answer)}: {name} handlers return {spec.forms} or None{hint}")
