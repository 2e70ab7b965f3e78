"""One record as text: the ladder of its steps with their answers, and the sentences of `agent-hooks why`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agent_hooks.checkpoints import printable
from agent_hooks.cli.reports.recorded import (
    answers,
    cell,
    local_time,
    one_line,
    title,
    type_of,
    where,
    who,
)
from agent_hooks.cli.screen.wording import console, plain_table, short
from agent_hooks.cli.streams import echo
from agent_hooks.errors import at, count
from agent_hooks.look.turns import turn_of
from agent_hooks.records.joining import Exchange, Record
from agent_hooks.records.lines import Change, Decision, Result, Step, Turn
from agent_hooks.values.wire import to_json

# Characters of an input, and of a reason.
_LONG = 2000
FAILURES = ("failed", "timeout", "stopped")
"""The answers of a step that gave none."""


def print_ladder(record: Record, saved: Sequence[Turn] = ()) -> None:
    """Print all that is known about a record; `saved`: the lines with the files that its turn has changed."""
    _print_facts(_facts(record))
    if record.steps or record.decision is not None:
        echo()
        _print_steps(record)
        echo()
    _print_facts([*_end(record), *_turn(saved)])


def _print_facts(facts: Iterable[tuple[str, str]]) -> None:
    for name, text in facts:
        echo(f"{name:9} {plain(text)}")


def plain(text: str) -> str:
    """Return a text on one line, fit for a terminal."""
    return one_line(text, _LONG).encode("utf-8", "replace").decode()


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    lead = record.lead
    yield type_of(record), f"{title(record)}"
    yield "id", record.id + (f", called by {lead.parent}" if lead.parent else "")
    yield "time", local_time(record.time)
    if record.decision is not None and record.decision.origin:
        yield "origin", f"{record.decision.origin}; no call of the model"
    agent = [lead.client, lead.client_version, f"({lead.mode})" if lead.mode else "", f"agent_hooks {lead.version}"]
    yield "agent", " ".join(part for part in agent if part) + ("" if lead.agent == "main" else f", {lead.agent}")
    yield "session", lead.session + (f", turn {lead.turn}" if lead.turn is not None else "")
    yield "project", lead.project + (f", in {lead.cwd}" if lead.cwd != lead.project else "")
    if lead.trust:
        yield "trust", f"{lead.trust} {lead.trusted_set[:12]}".rstrip()
    if (decision := record.decision) is not None:
        cut = ", cut" if decision.input_cut else ""
        yield "input", f"{_json(decision.input)} ({decision.input_size} bytes{cut})"
        if decision.rewrite:
            yield "changed", f"{patch(decision.rewrite)}, by {', '.join(decision.rewritten_by)}"


def _print_steps(record: Record) -> None:
    """Print the steps; those after the tool are counted from its start."""
    table = plain_table("at ms", "took ms", "step", "by", "answer")
    for column in table.columns[:2]:
        column.justify = "right"
    for line in (record.decision or record.other, record.result, record.observed):
        if isinstance(line, Result) and line.ms is not None:
            table.add_row("0.0", f"{line.ms:.1f}", "tool", cell(line.tool), cell(line.status))
        for step in getattr(line, "steps", ()):
            numbers = f"{step.at:.1f}", f"{step.ms:.1f}"
            table.add_row(*numbers, cell(step.stage), cell(_signature(step)), cell(_answer(step)))
        if isinstance(line, Decision):
            for exchange in record.exchanges:
                table.add_row("", "", "question", cell(_asked(exchange)), cell(_reply(exchange)))
            table.add_row(f"{line.ms:.1f}", "", "verdict", cell(record.by), cell(line.verdict))
    console().print(table)


def _signature(step: Step) -> str:
    place = at(short(step.file), step.line) if step.file else ""
    name = f"{step.by} {step.handler}".strip() if not place else step.handler
    return f"{place or ''} {name}".strip()


def _answer(step: Step) -> str:
    text = str(step.answer)
    if step.outcome == "settled":
        text += " (settled the question)"
    if step.outcome == "blocked" and step.answer in FAILURES:
        text += " (so blocked)"
    if step.reason:
        text += f": {step.reason}"
    if step.rule:
        text += f" (rule {step.rule})"
    if step.rewrite:
        text += f" {patch(step.rewrite)}"
    if step.changed:
        text += f" {', '.join(step.changed)}"
    if step.programs:
        text += f" [programs: {', '.join(step.programs)}]"
    return text


def _asked(exchange: Exchange) -> str:
    question = exchange.question
    return "(the question's line is missing)" if question is None else f"{question.by}: {question.title}".lstrip(": ")


def _reply(exchange: Exchange) -> str:
    answer = exchange.answer
    if answer is None:
        return "open: no answer was recorded"
    text = answer.reply + (f", {person}" if (person := who(answer)) else "")
    text += f", after {answer.ms / 1000:.1f} s" if answer.ms is not None else ""
    return f"{text}: {answer.text}" if answer.text else text


def _end(record: Record) -> Iterator[tuple[str, str]]:
    if not record.is_call:
        for exchange in record.exchanges:
            yield "question", f"{_asked(exchange)}: {_reply(exchange)}"
    reason = str(getattr(record.decision or record.other, "reason", ""))
    if reason:
        yield "reason", reason
    if record.is_call:
        if record.decision is None:
            yield "decision", "none is in the records"
        yield "result", "none is in the records" if record.result is None else _result(record.result)
    yield "lines", ", ".join(f"{file}:{number}" for file, number in record.lines)


def _result(result: Result) -> str:
    parts = [result.status, count(result.size, "byte")]
    if result.ms is not None:
        parts.append(f"{result.ms:.1f} ms")
    if result.redacted:
        parts.append("hidden: " + ", ".join(f"{number} {kind}" for kind, number in result.redacted.items()))
    if result.checkpoint:
        parts.append(f"checkpoint {result.checkpoint}")
    return ", ".join(parts) + (f": {result.error}" if result.error else "")


def _turn(saved: Sequence[Turn]) -> Iterator[tuple[str, str]]:
    for line in saved:
        changed = len(line.files) + line.more
        names = ", ".join([*line.files, *([f"and {line.more} more"] if line.more else [])])
        yield "turn", f"{count(changed, 'file')} changed in {line.tree}" + (f": {names}" if names else "")
        if changed:
            words = ["agent-hooks", "undo", "--turn", line.turn_id, "--cwd", line.tree]
            yield "way back", shlex.join(words)


def patch(changes: tuple[Change, ...]) -> str:
    """Return the operations of a patch in words."""
    words = (
        f"{each.op} {each.path or 'all'}{'' if each.op == 'remove' else f' → {_json(each.value)}'}" for each in changes
    )
    return "; ".join(words)


def _json(value: Any) -> str:
    return to_json(value).decode("utf-8", "replace")


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
        "overruled": "was blocked, and ran all the same, because something in the agent overruled its hooks",
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
    if verdict == "overruled":
        mods = record.result.mods if record.result is not None else ()
        loaded = f"the agent loads these mods: {'; '.join(mods)}" if mods else "no mod was found in the agent's files"
        return f"{loaded}; see which may have overruled the hooks: agent-hooks doctor"
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
        return f"mend or remove the hook: agent-hooks check {shlex.quote(step.by)}"
    if cause in ("failed", "timed_out") or (step is not None and step.answer in FAILURES):
        if not file:
            return "mend the hook or its settings"
        return f"mend the hook: agent-hooks check {shlex.quote(file)}"
    if cause == "transformer":
        return "a person mends or removes the transformer"
    if not file:
        return "a person changes the settings or the hook that is named above"
    project = record.lead.project
    approval = ", and approves that: agent-hooks trust" if project and file.startswith(project + os.sep) else ""
    aim = "to allow such calls" if record.verdict == "block" else "to keep inputs and results as they are"
    return f"{aim}, a person edits or removes this handler{approval}"
