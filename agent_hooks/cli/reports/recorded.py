"""Records, found by an id, as JSON lines for a program or as a table for a user. Both are harmless for a terminal."""

from __future__ import annotations

import gc
import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import msgspec
from rich.text import Text

from agent_hooks.cli.screen.wording import console, plain_table
from agent_hooks.cli.streams import echo
from agent_hooks.errors import AgentHooksError, count, text_of
from agent_hooks.records.files import records_directory
from agent_hooks.records.joining import CHANGED, VERDICTS, Exchange, Reader, Record, Wanted, aware, groups
from agent_hooks.records.lines import Answer, Edit, Line, Prompt, Remembered, Result, Run, Session, Unlock
from agent_hooks.records.reading import name_of_session
from agent_hooks.settings import agent_home
from agent_hooks.ui.harmless import harmless
from agent_hooks.values.tool import call_line
from agent_hooks.values.wire import to_json

ROWS = 100
"""The most rows of the table, unless the person wants another number; older records are only counted."""
_COLUMNS = ("time", "id", "where", "call", "verdict", "by", "answer")
_OPTIONAL = ("by", "answer")
_WARNING = "bold red"
# Characters of a part of a row.
_WIDTH = 160
# The fields of a line that belong to its file, or that the record has.
_CHAIN = ("kind", "v", "prev", "n", "clock", "time", "id")
# The characters that `harmless` escapes; in JSON they stand in strings only, where an escape means the same.
_UNSAFE = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


# ---- as JSON


def json_line(record: Record) -> str:
    """Return a record as one line of JSON."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", to_json(as_object(record)).decode("utf-8", "replace"))


def as_object(record: Record) -> dict[str, Any]:
    """Return a record as one object: the leading line, with the questions and the result of a call."""
    lead = record.lead
    fields: dict[str, Any] = {
        "type": type_of(record),
        "id": record.id,
        "time": record.time.isoformat(),
        **_fields(lead),
        "verdict": record.verdict,
        "changed": record.changed,
        "by": record.by,
        "trial": record.is_trial,
    }
    if record.is_call:
        fields["steps"] = [msgspec.to_builtins(step) for step in record.steps]
        fields["result"] = None if record.result is None else _own(record.result, Result)
    if record.is_call or record.exchanges:
        fields["questions"] = [_exchange(each) for each in record.exchanges]
    fields["lines"] = [f"{file}:{number}" for file, number in record.lines]
    return fields


def type_of(record: Record) -> str:
    """Return the type of a record: `call`, `dialog`, or the kind of its line."""
    if record.is_call:
        return "call"
    return "dialog" if record.other is None else str(record.other.__struct_config__.tag)


def _fields(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(line)
    return {name: value for name, value in found.items() if name not in _CHAIN}


def _own(line: Line, kind: type[Line]) -> dict[str, Any]:
    """Return the fields that a kind of line has beside those of all lines, and its time."""
    common = Line.__struct_encode_fields__
    found = {name: value for name, value in _fields(line).items() if name not in common and name in _names(kind)}
    return {"time": aware(line.time).isoformat(), **found}


def _names(kind: type[Line]) -> tuple[str, ...]:
    return kind.__struct_encode_fields__


def _exchange(exchange: Exchange) -> dict[str, Any]:
    question, answer = exchange.question, exchange.answer
    return {
        "question": None if question is None else _own(question, type(question)),
        "answer": None if answer is None else _own(answer, type(answer)),
    }


# ---- as a table


class RecordsTable:
    """The newest records as rows, and the sums of all."""

    def __init__(self, rows: int = ROWS) -> None:
        self._newest: deque[Record] = deque(maxlen=rows)
        self._rows = 0
        self._calls = 0
        self._trials = 0
        self._verdicts: Counter[str] = Counter()
        self._replies: Counter[str] = Counter()
        self._sessions: set[str] = set()
        self._by: dict[str, Counter[str]] = {}

    def add(self, record: Record) -> None:
        """Count a record, and keep it if it is one of the newest."""
        self._newest.append(record)
        self._rows += 1
        self._sessions.add(record.lead.session)
        words = [record.verdict, *([CHANGED] if record.changed else [])]
        if record.is_call:
            self._calls += 1
            self._trials += record.is_trial
            self._verdicts.update(words)
        for exchange in record.exchanges:
            self._replies[exchange.answer.reply if exchange.answer else "open"] += 1
        if record.by:
            self._by.setdefault(record.by, Counter()).update(words)

    def print(self, reader: Reader) -> None:
        """Print the rows, the answers of each hook and guard, and the sums."""
        if self._newest:
            self._print_rows()
            if self._by:
                echo()
                self._print_signers()
            echo()
        for line in self._sums():
            echo(line)
        for line in unread_lines(reader):
            echo(line)

    def _print_rows(self) -> None:
        rows = [row_of(record) for record in self._newest]
        # A terminal is narrow, so a column that would be empty is left out.
        used = [at for at, name in enumerate(_COLUMNS) if name not in _OPTIONAL or any(row[at] for row in rows)]
        table = plain_table(*(_COLUMNS[at] for at in used))
        for column in table.columns[:2]:
            column.no_wrap = True
        for record, row in zip(self._newest, rows, strict=True):
            table.add_row(*(cell(row[at]) for at in used), style=_style(record))
        console().print(table)
        if self._rows > len(self._newest):
            echo(f"before these {self._rows - len(self._newest)} more; --last N shows more, --json all of them")

    def _print_signers(self) -> None:
        words = [word for word in (*VERDICTS, CHANGED) if any(counts[word] for counts in self._by.values())]
        table = plain_table("by", *words)
        for by, counts in sorted(self._by.items(), key=lambda each: -sum(each[1].values())):
            table.add_row(cell(by), *(str(counts[word] or "") for word in words))
        console().print(table)

    def _sums(self) -> Iterator[str]:
        names = {
            "pass": "passed",
            "allow": "allowed",
            "ask": "asked",
            "block": "blocked",
            "unknown": "without a decision",
        }
        parts = [
            f"{self._verdicts[word]} {names.get(word, word)}" for word in (*VERDICTS, CHANGED) if self._verdicts[word]
        ]
        sums = f": {', '.join(parts)}" if parts else ""
        trials = f"; {self._trials} of them a trial of doctor" if self._trials else ""
        yield f"{count(self._calls, 'call')} in {count(len(self._sessions), 'session')}{sums}{trials}"
        if self._replies:
            yield "questions: " + ", ".join(f"{number} {reply}" for reply, number in self._replies.most_common())


def unread_lines(reader: Reader) -> Iterator[str]:
    """Yield a sentence for the lines, and for each file, that could not be read."""
    unread = reader.unread
    if unread.lines:
        yield f"not read: {count(unread.lines, 'line')}; `agent-hooks records verify` names the places"
    if unread.newer:
        yield f"not shown: {count(unread.newer, 'line')} of a later version of agent_hooks"
    for reason in unread.files:
        yield harmless(f"not read: {reason}")


def row_of(record: Record) -> tuple[str, ...]:
    """Return the cells of a record: time, id, client and project, call, verdict, hook and rule, answer."""
    verdict = record.verdict
    if record.changed:
        verdict = CHANGED if verdict == "pass" else f"{verdict}, {CHANGED}"
    if record.is_call and record.decision is not None and record.result is None and verdict != "block":
        verdict += ", no result"
    return (
        local_time(record.time, "%m-%d %H:%M:%S"),
        record.id,
        where(record),
        title(record),
        verdict,
        record.by,
        answers(record),
    )


def where(record: Record) -> str:
    """Return the client and the name of the project's directory."""
    lead = record.lead
    project = os.path.basename((lead.project or lead.cwd).rstrip("/"))
    return " ".join(part for part in (lead.client, project) if part)


def title(record: Record) -> str:
    """Return a record in a few words: the call with its input, or the event."""
    if record.is_call:
        given = record.decision
        call = call_line(record.tool, given.input) if given is not None else f"{record.tool} (its input is not known)"
        if given is not None and given.origin:
            call = f"({given.origin}) {call}"
        return f"(trial of doctor) {call}" if record.is_trial else call
    return f"({type_of(record)}) {_about(record)}".rstrip()


def _about(record: Record) -> str:
    match record.other:
        case Prompt(text=text):
            return text
        case Session(event=event):
            return event
        case Run(event=event, go_on=go_on):
            return f"{event}; a hook continues it: {go_on}" if go_on else event
        case Edit(path=path, what=what):
            return f"{what} {path}"
        case Unlock(event=event, until=until):
            return f"{event} {local_time(aware(until))}" if until else event
        case Remembered():
            return _remembered(record.other)
        case None:
            return next((each.question.title for each in record.exchanges if each.question), "")
    return text_of(getattr(record.other, "event", ""))


def _remembered(line: Remembered) -> str:
    name = f"answer {line.number}" if line.number else "the answer for this session"
    return f"{line.event} {name}: {line.program or line.title} ({line.rule or line.by})"


def answers(record: Record) -> str:
    """Return the replies to the questions, each with its person."""
    return "; ".join(_answered(each.answer) for each in record.exchanges)


def _answered(answer: Answer | None) -> str:
    if answer is None:
        return "open"
    return f"{answer.reply}: {person}" if (person := who(answer)) else answer.reply


def who(answer: Answer) -> str:
    """Return the name of the person or the interceptor that answered; empty without an answer."""
    if answer.reply in ("expired", "failed", "nobody", "unknown"):
        return ""
    if answer.who == "client":
        return f"{answer.client or 'the other agent'}'s user"
    return answer.user or answer.who if answer.who == "person" else answer.who


def local_time(time: datetime, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time as the clock on the wall shows it."""
    try:
        return time.astimezone().strftime(form)
    except (OverflowError, ValueError, OSError):
        # A damaged line may hold a year that no zone reaches.
        return time.isoformat()


def one_line(text: str, limit: int = _WIDTH) -> str:
    """Return a text on one line, harmless and cut."""
    line = " ".join(harmless(text[: limit * 4]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _style(record: Record) -> str:
    return _WARNING if record.verdict == "overruled" else ""


def warn(line: str) -> None:
    """Print a line on stdout, in red on a terminal."""
    console().print(Text(harmless(line), _WARNING), soft_wrap=True)


def cell(text: str) -> Text:
    """Return a text for a table."""
    return Text(one_line(text).encode("utf-8", "replace").decode())


def shown(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the calls, and the other records in which a hook or the person had a part."""
    return (record for record in records if record.is_call or record.notable)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
# Candidates that an error names.
_NAMED = 5


def opened() -> Reader:
    """Return a reader of the person's records."""
    # Records hold no cycles, and the search for garbage among them would take half of the command's time.
    gc.disable()
    return Reader(records_directory(agent_home()))


def find(reader: Reader, id: str) -> Record:
    """Return the only record whose id begins so; raises `AgentHooksError` when there is none, or several."""
    # A whole id is found first, because another may begin with it.
    found: dict[str, Record] = {}
    for record in reader.records(Wanted(id=id)):
        found[record.id] = record
    if id in found:
        return found[id]
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise AgentHooksError(f"no record has an id that begins with {id!r}; agent-hooks records lists them")
    raise AgentHooksError(f"{len(found)} records have an id that begins with {id!r}: {_some(list(found))}")


def find_session(reader: Reader, id: str) -> str:
    """Return the only recorded session whose id begins so; raises `AgentHooksError` when there is none, or several."""
    sessions = {name_of_session(group.paths[0]) for group in groups(reader.directory)}
    found = sorted(each for each in sessions if each.startswith(id))
    if id in found or len(found) == 1:
        return id if id in found else found[0]
    if not found:
        raise AgentHooksError(f"no recorded session has an id that begins with {id!r}")
    raise AgentHooksError(f"{len(found)} recorded sessions have an id that begins with {id!r}: {_some(found)}")


def _some(names: list[str]) -> str:
    return harmless(", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else ""))


def moment(text: str | None) -> datetime | None:
    """Return the time that `--since` names."""
    if text is None:
        return None
    now = datetime.now(UTC)
    try:
        if (span := re.fullmatch(r"(\d+)([smhdw])", text)) is not None:
            return now - timedelta(seconds=int(span[1]) * _UNITS[span[2]])
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise click.UsageError(f"--since wants a time such as 30m, 12h, 7d or 2026-01-31, not {text!r}") from None
