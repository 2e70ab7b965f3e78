"""The ladder of one call: its steps as rungs, in the order in which the call passed them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agent_hooks.effects import effects_of
from agent_hooks.look.hooks import is_gone
from agent_hooks.records.joining import Exchange, Record
from agent_hooks.records.lines import Change, Decision, Result, Step

# Paths and hosts of one kind that are named.
_MOST = 50

KINDS = {
    "transform": "transformer",
    "tool.before": "rewriter",
    "before_tool_call": "rewriter",
    "guards": "guard",
    "tool_call": "gate",
    "permission.ask": "gate",
    "ask": "person",
    "filter": "result",
    "tool_result": "result",
    "tool.after": "result",
    "redact": "result",
    "after_tool_call": "observer",
}
"""The kind of rung of each stage."""


def rungs(record: Record, saw: str) -> list[dict[str, Any]]:
    """Return the rungs of a call; `saw`: the result as the model saw it, redacted, if a transcript has it."""
    return [*_before(record), *_person(record), *_tool(record.result), *_after(record, saw)]


def _before(record: Record) -> Iterator[dict[str, Any]]:
    decision = record.decision
    if decision is None:
        return
    current = decision.input
    effects: dict[str, Any] | None = None
    for step in decision.steps:
        rung = _rung(step, KINDS.get(step.stage, "gate"))
        if step.rewrite:
            after = applied(current, step.rewrite)
            rung["diff"] = diff_of_values(current, after)
            current = after
        if step.stage == "guards" and effects is None:
            # All guards see the same call, so its effects stand once.
            effects = rung["effects"] = _effects_of(decision, current)
        yield rung


def _person(record: Record) -> Iterator[dict[str, Any]]:
    for exchange in record.exchanges:
        question, answer = exchange.question, exchange.answer
        reply = "open" if answer is None else str(answer.reply)
        rung = _empty("ask", "person")
        rung |= {"by": "" if question is None else question.by, "answer": reply}
        rung["reason"] = "" if question is None else question.title
        rung["ms"] = None if answer is None else answer.ms
        yield rung


def _tool(result: Result | None) -> Iterator[dict[str, Any]]:
    if result is None or result.status == "blocked":
        return
    yield _empty("tool", "tool") | {"by": result.tool, "answer": result.status, "reason": result.error, "ms": result.ms}


def _after(record: Record, saw: str) -> Iterator[dict[str, Any]]:
    result = record.result
    if result is not None:
        for step in result.steps:
            yield _rung(step, KINDS.get(step.stage, "result"))
        if result.redacted:
            rung = _empty("redact", "result") | {"by": "redaction", "answer": "changed", "redacted": result.redacted}
            yield rung | {"diff": diff_of_redaction(saw) or None}
    if record.observed is not None:
        for step in record.observed.steps:
            yield _rung(step, "observer")


def _rung(step: Step, kind: str) -> dict[str, Any]:
    return {
        "stage": step.stage,
        "kind": kind,
        "by": step.by,
        "handler": step.handler,
        "file": step.file,
        "line": step.line,
        "gone": is_gone(step.file),
        "answer": step.answer,
        "outcome": step.outcome,
        "reason": step.reason,
        "rule": step.rule,
        "remedy": step.remedy,
        "at": step.at,
        "ms": step.ms,
        "diff": None,
        "programs": list(step.programs),
        "effects": None,
        "changed": list(step.changed),
        "redacted": {},
    }


def _empty(stage: str, kind: str) -> dict[str, Any]:
    return _rung(Step(stage=stage), kind) | {"at": None, "ms": None}


def questions(exchanges: list[Exchange]) -> list[dict[str, Any]]:
    """Return the questions of a call with their answers."""
    found = []
    for exchange in exchanges:
        question, answer = exchange.question, exchange.answer
        found.append(
            {
                "title": "" if question is None else question.title,
                "message": "" if question is None else question.message,
                "by": "" if question is None else question.by,
                "to": "" if question is None else question.to,
                "waitedMs": None if answer is None else answer.ms,
                "reply": "open" if answer is None else answer.reply,
                "text": "" if answer is None else answer.text,
                "who": "" if answer is None else answer.who,
            }
        )
    return found


def _effects_of(decision: Decision, input: Any) -> dict[str, Any] | None:
    """Return the effects of a call by kind: `reads`, `writes`, `deletes`, `sends`, and `opaque` if there may be more.

    Records hold no effects, so today's guards find them again from the input, with the links of today's disk.
    `input`: the input as the guards saw it.  `None` without a directory, and for an input of which a part was cut off.
    """
    if not decision.cwd or decision.input_cut or not isinstance(input, dict):
        return None
    found = effects_of(decision.tool, input, cwd=decision.cwd)
    root = decision.cwd.rstrip("/") + "/"

    def named(access: str) -> list[str]:
        return _first(each.path.removeprefix(root) for each in found.paths if each.access == access)

    hosts = (each.host or "a host that is not known" for each in found.transfers if each.direction == "out")
    return {
        "reads": named("read"),
        "writes": named("write"),
        "deletes": named("delete"),
        "sends": _first(hosts),
        "opaque": bool(found.unknown),
    }


def _first(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts))[:_MOST]


Diff = list[dict[str, str]]
# Lines of a diff, and equal lines around a change.
_MOST_LINES = 400
_CONTEXT = 3
_MARK = re.compile(r"\[redacted [a-z0-9-]+\]")
_HIDDEN = "•••"


def diff_of_values(before: Any, after: Any) -> Diff:
    """Return the diff of two inputs; each text of an object stands on lines of its own."""
    return _diff(list(_lines(before)), list(_lines(after)))


def diff_of_redaction(text: str) -> Diff:
    """Return the lines of a text in which redaction hid a secret, before with a mark in place of the secret."""
    found: Diff = []
    for line in text.splitlines():
        if _MARK.search(line):
            found.append({"op": "-", "text": _MARK.sub(_HIDDEN, line)})
            found.append({"op": "+", "text": line})
            if len(found) >= _MOST_LINES:
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
    return lines[:_MOST_LINES]


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
