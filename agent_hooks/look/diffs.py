"""Diffs of inputs and texts, line by line."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agent_hooks.records.lines import Change

Diff = list[dict[str, str]]
# Lines of a diff, and equal lines around a change.
_MOST = 400
_CONTEXT = 3
_MARK = re.compile(r"\[redacted [a-z0-9-]+\]")
_HIDDEN = "•••"


def of_values(before: Any, after: Any) -> Diff:
    """Return the diff of two inputs; each text of an object stands on lines of its own."""
    return _diff(list(_lines(before)), list(_lines(after)))


def of_redaction(text: str) -> Diff:
    """Return the lines of a text in which redaction hid a secret, before with a mark in place of the secret."""
    found: Diff = []
    for line in text.splitlines():
        if _MARK.search(line):
            found.append({"op": "-", "text": _MARK.sub(_HIDDEN, line)})
            found.append({"op": "+", "text": line})
            if len(found) >= _MOST:
                break
    return found


def applied(value: Any, changes: Iterable[Change]) -> Any:
    """Return JSON data after the operations of a patch; operations that do not fit are passed over."""
    result = json.loads(json.dumps(value))
    for change in changes:
        result = _applied(result, change)
    return result


def _applied(value: Any, change: Change) -> Any:
    if not change.path:
        return change.value
    names = [name.replace("~1", "/").replace("~0", "~") for name in change.path.split("/")[1:]]
    place = value
    for name in names[:-1]:
        if not isinstance(place, dict) or name not in place:
            return value
        place = place[name]
    if isinstance(place, dict):
        if change.op == "remove":
            place.pop(names[-1], None)
        else:
            place[names[-1]] = change.value
    return value


def _diff(before: Sequence[str], after: Sequence[str]) -> Diff:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=True)
    lines: Diff = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        for kind, begin, end, other_begin, other_end in group:
            if kind == "equal":
                lines += [{"op": " ", "text": line} for line in before[begin:end]]
            else:
                lines += [{"op": "-", "text": line} for line in before[begin:end]]
                lines += [{"op": "+", "text": line} for line in after[other_begin:other_end]]
    return lines[:_MOST]


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, str):
                first, *rest = each.split("\n")
                yield f"{name}: {first}"
                yield from rest
            else:
                yield f"{name}: {json.dumps(each, ensure_ascii=False)}"
    elif isinstance(value, str):
        yield from value.split("\n")
    else:
        yield json.dumps(value, ensure_ascii=False)
