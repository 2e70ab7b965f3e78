"""Makes the steps of a line from the steps of a trail."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.points import Changed, PermissionOutput, ToolBeforeOutput
from agent_hooks.dispatch.reading import read_answer
from agent_hooks.records.lines import Step, StepAnswer
from agent_hooks.records.private import Cleaner, as_json
from agent_hooks.records.trail import Passed, Trail
from agent_hooks.storage.digests import sha256
from agent_hooks.values.answers import (
    AddContext,
    Ask,
    Block,
    Cancel,
    Compaction,
    Continue,
    Replace,
    Rewrite,
    SkipConversationRestore,
    Stop,
)

_NAMES: dict[type[Any], StepAnswer] = {
    Block: "block",
    Stop: "stop",
    AddContext: "context",
    Cancel: "cancel",
    Ask: "ask",
    Rewrite: "rewrite",
    Replace: "replace",
    Continue: "continue",
    Compaction: "compaction",
    SkipConversationRestore: "skip",
    Changed: "changed",
}
_STOPS = (Block, Cancel)
# The events that a stop does not block: it ends the run after them.
_GO_ON = ("tool_result", "turn_end")


class StepMaker:
    """Makes steps; keeps the facts about each handler, which stay the same."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._facts: dict[Handler, dict[str, Any]] = {}
        self._digests: dict[str, str] = {}
        self._silent: dict[tuple[Handler, str], bytes] = {}

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a hook's file, as it was at the first question; empty without a file."""
        known = self._digests.get(path)
        if known is None:
            known = self._digests[path] = _digest(path)
        return known

    def take_digests(self, before: StepMaker, paths: Iterable[str]) -> None:
        """Take the digests of these hooks from another maker, because their files may have changed."""
        self._digests.update((path, before.digest(path)) for path in paths)

    def steps(self, trail: Trail) -> tuple[Step, ...]:
        """Return the steps of a trail, in order."""
        current = trail.input
        steps = []
        for passed in trail.passed:
            step, current = self._step(passed, trail.began, current)
            steps.append(step)
        return tuple(steps)

    def json(self, trail: Trail) -> bytes:
        """Return the steps of a trail as the field `steps` in JSON, with a comma before it.

        A step of a silent handler is formatted by hand, from text that stays the same: `steps` takes three times longer.
        """
        began, current = trail.began, trail.input
        steps = []
        for passed in trail.passed:
            handler = passed.handler
            if passed.answer is None and handler is not None and not passed.failure and passed.after is None:
                begin = self._silent.get((handler, passed.stage)) or self._begin(handler, passed)
                steps.append(b'%b,"at":%.3f,"ms":%.3f}' % (begin, (passed.began - began) * 1000, passed.ms))
            else:
                step, current = self._step(passed, began, current)
                steps.append(as_json(step))
        return b',"steps":[%b]' % b",".join(steps)

    def _begin(self, handler: Handler, passed: Passed) -> bytes:
        """Return the JSON of a silent handler's step without its end."""
        step = Step(stage=passed.stage, by=passed.by, **self._of_handler(handler))
        begin = self._silent[handler, passed.stage] = as_json(step)[:-1]
        return begin

    def _step(self, passed: Passed, began: float, current: Any) -> tuple[Step, Any]:
        facts = self._of_handler(passed.handler)
        at = round((passed.began - began) * 1000, 3)
        ms = round(passed.ms, 3)
        if passed.answer is None and not passed.failure and passed.after is None:
            # The common case: a silent handler.
            return Step(stage=passed.stage, at=at, ms=ms, by=passed.by, programs=passed.programs, **facts), current
        fields: dict[str, Any] = {"by": passed.by, "programs": passed.programs, "changed": passed.changed}
        answers = _read(passed)
        if passed.failure:
            fields["answer"] = passed.failure
            fields["reason"] = self._cleaner.text(passed.text)
            fields["outcome"] = "blocked" if passed.blocked else "continued"
            if passed.failure == "timeout":
                fields["outcome"] = "timeout"
        for answer in answers:
            fields |= self._of_answer(answer)
            if isinstance(answer, Stop) and passed.stage in _GO_ON:
                fields["outcome"] = "continued"
        after = next((_input_of(answer) for answer in answers if _input_of(answer) is not None), passed.after)
        if after is not None:
            before = current if passed.before is None else passed.before
            fields |= {"answer": fields.get("answer", "rewrite"), "rewrite": self._cleaner.patch(before, after)}
            if fields["answer"] == "changed":
                fields["answer"] = "rewrite"
            current = after
        return Step(stage=passed.stage, at=at, ms=ms, **(facts | fields)), current

    def _of_answer(self, answer: Any) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        kind = answer if isinstance(answer, str) else _NAMES.get(type(answer))
        if kind is not None:
            fields["answer"] = kind
        match answer:
            case Block():
                fields |= {"reason": answer.reason, "rule": answer.rule, "remedy": answer.remedy}
            case Ask():
                fields |= {"reason": answer.title, "rule": answer.rule, "remedy": answer.remedy}
            case Cancel():
                fields["reason"] = answer.reason or ""
            case Continue() | AddContext():
                fields["reason"] = answer.text
            case Replace():
                fields["changed"] = tuple(answer.changes())
            case Changed(output=PermissionOutput(status="allow" | "deny" as status)):
                fields |= {"answer": status, "outcome": "settled"}
        if isinstance(answer, _STOPS):
            fields["outcome"] = "blocked"
        for name in ("reason", "rule", "remedy"):
            if name in fields:
                fields[name] = self._cleaner.text(fields[name])
        return fields

    def _of_handler(self, handler: Handler | None) -> dict[str, Any]:
        if handler is None:
            return {}
        facts = self._facts.get(handler)
        if facts is None:
            facts = self._facts[handler] = {
                "handler": handler.name,
                "file": self._cleaner.text(handler.file or ""),
                "sha256": self.digest(handler.file or ""),
                "line": handler.line,
                "priority": handler.priority,
            }
        return facts


def _read(passed: Passed) -> Sequence[Any]:
    """Return the answers of a step as values; an answer that cannot be read has a failure beside it."""
    answer, handler = passed.answer, passed.handler
    if answer is None:
        return ()
    if handler is None or type(answer) in _NAMES:
        return (answer,)
    spec = passed.spec
    if spec is None or not spec.answers:
        return ()
    try:
        return read_answer(handler.event, spec, answer)
    except (TypeError, ValueError):
        return ()


def _input_of(answer: Any) -> Any:
    """Return the new input of a rewriting answer."""
    match answer:
        case Rewrite():
            return answer.input
        case Ask(rewrite=Rewrite() as rewrite):
            return rewrite.input
        case Changed(output=ToolBeforeOutput() as output):
            return output.args
    return None


def _digest(path: str) -> str:
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as file:
            return sha256(file.read())
    except OSError:
        return ""
