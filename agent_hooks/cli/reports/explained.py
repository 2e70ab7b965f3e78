"""The sentences on a record: the fate of the call, the file or guard behind it, the remedy, and the way back."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from agent_hooks.checkpoints import printable
from agent_hooks.cli.reports.ladder import FAILURES, patch, plain
from agent_hooks.cli.reports.recorded import answers, local_time, title, where
from agent_hooks.errors import at, count
from agent_hooks.look.turns import turn_of
from agent_hooks.records.joining import Record
from agent_hooks.records.lines import Decision, Step, Turn

_LOADER = "/agent_hooks/hooks/loaded.py"
# The files of a turn that are named.
_FILES = 3
_BECAUSE = {"user": ", because the person said no", "nobody": ", because no person could be asked"}


def explanation(record: Record) -> tuple[str, str, str]:
    """Return three lines: the call and its fate, the file or guard behind it with the reason, and the remedy."""
    remedy = _remedy(record)
    return plain(_fate(record)), plain(_cause(record)), plain(f"{remedy[:1].upper()}{remedy[1:]}")


def way_back(record: Record, saved: Sequence[Turn]) -> list[str]:
    """Return lines with the files that the turn of a call changed, and the command that brings them back, if any.

    `saved`: the lines with these files, of `Reader.turn`.
    """
    # A call that was stopped has changed nothing.
    if not record.is_call or (record.result is not None and record.result.status == "blocked"):
        return []
    turn = turn_of(record.lead, record.result, saved)
    if turn is None or turn["bringBack"] is None:
        return []
    names = [printable(name) for name in turn["files"][:_FILES]]
    more = len(turn["files"]) - len(names) + turn["more"]
    files = ", ".join(names) + (f" and {count(more, 'more file')}" if more else "")
    return [
        plain(f"Its turn changed {files}; to bring back the files as they were before it:"),
        f"  {turn['bringBack']}",
    ]


def _fate(record: Record) -> str:
    verdict = record.verdict
    reply = answers(record)
    fates = {
        "block": "was blocked",
        "ask": "was asked about, and the question went to the agent's own prompt",
        "allow": "was asked about, and ran",
        "aborted": "was left before it was judged",
        "unknown": "has no recorded decision",
        "pass": "passed",
    }
    fate = "was changed" if verdict == "pass" and record.changed else fates.get(verdict, verdict)
    if record.decision is not None and record.decision.cause == "schema":
        fate = "was not run"
    elif record.decision is not None:
        fate += _BECAUSE.get(record.decision.cause, "")
    place = ", ".join(part for part in (where(record), f"id {record.id}") if part)
    said = f" (answer: {reply})" if reply else ""
    return f"{local_time(record.time)}: {title(record)} {fate}{said} [{place}]"


def _cause(record: Record) -> str:
    decision, step = record.decision, _signer(record)
    if record.is_call and record.verdict == "pass" and step is None:
        return "No guard and no hook objected"
    reason = (decision.reason if decision else "") or (step.reason if step else "")
    rule = (decision.rule if decision else "") or (step.rule if step else "")
    named = f"{_origin(step, decision)}{f' (rule {rule})' if rule else ''}"
    if record.verdict == "pass" and decision is not None and decision.rewrite:
        return f"By {named}: {patch(decision.rewrite)}"
    if step is not None and step.answer in FAILURES:
        failed = "gave no answer in time" if step.answer == "timeout" else "failed"
        return f"By {named}, which {failed}: {reason}"
    return f"By {named}: {reason}" if reason else f"By {named}"


def _signer(record: Record) -> Step | None:
    """Return the step behind the verdict: the last one that stopped or asked, or else the last that changed."""
    steps = record.signers
    stopped = [step for step in steps if step.outcome in ("blocked", "timeout") or step.answer in ("ask", "deny")]
    return next(reversed(stopped or steps), None)


def _origin(step: Step | None, decision: Decision | None) -> str:
    if step is not None and step.file and not _stands_in(step):
        return f"{at(step.file, step.line)} ({step.handler})" if step.handler else at(step.file, step.line)
    return (decision.by if decision else "") or (step.by if step else "") or "agent_hooks"


def _stands_in(step: Step) -> bool:
    """Tell whether the step's handler is ours, in the place of a hook that could not be loaded."""
    return step.file.endswith(_LOADER)


def _remedy(record: Record) -> str:
    decision, step = record.decision, _signer(record)
    given = (decision.remedy if decision else "") or (step.remedy if step else "")
    verdict = record.verdict
    if given:
        return given if given.startswith("a person can") else f"a person can allow it: {given}"
    if verdict in ("allow", "pass") and not record.changed:
        return "nothing is left to allow: the call ran"
    if verdict == "ask":
        return f"a person allows it at the question that {record.lead.client or 'the agent'} shows"
    if verdict == "aborted":
        return "nothing stopped it: the agent was interrupted, and may try again"
    return _remedy_of_cause(record, decision.cause if decision else "", step)


def _remedy_of_cause(record: Record, cause: str, step: Step | None) -> str:
    file = step.file if step is not None else ""
    if cause == "user":
        return "the person said no; when the agent tries again, the answer may be yes"
    if cause == "nobody":
        return "run the agent where a person can be asked: at a terminal, in interactive mode"
    if cause == "schema":
        return "the model has to send an input that the tool's schema allows; no person has to allow anything"
    if step is not None and _stands_in(step):
        return f"a person mends or removes the hook: agent-hooks check {shlex.quote(step.by)}"
    if cause in ("failed", "timed_out") or (step is not None and step.answer in FAILURES):
        if not file:
            return "a person mends the hook or its settings"
        return f"a person mends the hook: agent-hooks check {shlex.quote(file)}"
    if cause == "transformer":
        return "a person mends or removes the transformer"
    if not file:
        return "a person changes the settings or the hook that is named above"
    project = record.lead.project
    approval = ", and approves that: agent-hooks trust" if project and file.startswith(project + os.sep) else ""
    aim = "to allow such calls" if record.verdict == "block" else "to keep inputs and results as they are"
    return f"{aim}, a person edits or removes this handler{approval}"
