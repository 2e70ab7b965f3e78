"""The answers of a replay, as JSON lines for a program or as tables for a person; secrets are hidden in both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from rich.text import Text

from agent_hooks.cli.screen.wording import console, plain_table
from agent_hooks.cli.streams import echo
from agent_hooks.errors import count
from agent_hooks.redaction import Redactor
from agent_hooks.transcripts.replaying import VERDICTS, Answered, Decision, Tally
from agent_hooks.ui.harmless import harmless
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import call_line
from agent_hooks.values.wire import to_json

ROWS = 100
"""The most rows of the table; the others are only counted."""


class Report(Protocol):
    """A report of a replay: `add` for each answer, `end` after the last, `close` when the hooks have unloaded."""

    redactor: Redactor | None

    def add(self, answered: Answered) -> None:
        """Take the answer to one recorded call."""
        ...

    def end(self, tally: Tally) -> None:
        """Take the sums."""
        ...

    def close(self, tally: Tally) -> None:
        """Print the rest; stdout is the command's own again."""
        ...


class JsonReport:
    """One JSON object a line, as soon as it is known."""

    redactor: Redactor | None = None

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def add(self, answered: Answered) -> None:
        """Print an answer."""
        call = answered.call
        why, (given, rewritten) = _hidden(self.redactor, answered.why, [call.input, answered.rewritten])
        fields = {
            "type": "answer",
            "verdict": answered.verdict,
            "by": answered.by,
            "why": why,
            "tool": call.tool_name,
            "input": given,
            "rewritten": rewritten,
            "rewrittenBy": answered.rewritten_by or None,
            "then": answered.then,
            "file": answered.file,
            "line": answered.line,
            "time": call.time,
            "sessionId": call.session_id,
            "agentId": call.agent_id,
            "toolCallId": call.tool_call_id,
            "cwd": call.cwd,
        }
        self._write(to_json({key: value for key, value in fields.items() if value is not None}).decode() + "\n")

    def end(self, tally: Tally) -> None:
        """Print the summary."""
        self._write(to_json({"type": "summary", **msgspec.structs.asdict(tally)}).decode() + "\n")

    def close(self, tally: Tally) -> None:
        """Do nothing: the summary was the last line."""


class _Row(NamedTuple):
    """The key of a row: calls with the same answer to the same input share it."""

    verdict: Decision
    call: str
    why: str


class TableReport:
    """A table with a row for each different call, the worst and then the most frequent first."""

    redactor: Redactor | None = None

    def __init__(self) -> None:
        # Row → the first place, and the number of each outcome.
        self._rows: dict[_Row, tuple[str, dict[str, int]]] = {}

    def add(self, answered: Answered) -> None:
        """Count an answer."""
        # With the remedy, every row would repeat the same sentence.
        why, inputs = _hidden(self.redactor, answered.brief, [answered.call.input, answered.rewritten])
        calls = [call_line(answered.call.tool_name, each) for each in inputs if each is not None]
        row = _Row(answered.verdict, "\n→ ".join(calls), why)
        place = f"{os.path.basename(answered.file)}:{answered.line}"
        _, counts = self._rows.setdefault(row, (place, {}))
        counts[answered.then] = counts.get(answered.then, 0) + 1

    def end(self, tally: Tally) -> None:
        """Do nothing: hooks may print until they have unloaded."""

    def close(self, tally: Tally) -> None:
        """Print the calls, the answers of each hook and guard, and the sums."""
        if self._rows:
            self._print_calls()
            _print_signers(tally)
        for line in _sums(tally):
            echo(line)

    def _print_calls(self) -> None:
        found = sorted(
            self._rows.items(), key=lambda each: (VERDICTS.index(each[0].verdict), -sum(each[1][1].values()))
        )
        table = plain_table("verdict", "times", "then", "call", "why", "first at")
        for row, (place, counts) in found[:ROWS]:
            table.add_row(
                row.verdict, str(sum(counts.values())), _outcomes(counts), *map(_text, (row.call, row.why, place))
            )
        console().print(table)
        if len(found) > ROWS:
            echo(f"and {count(len(found) - ROWS, 'more row')}; --json prints every call")
        echo()


def _print_signers(tally: Tally) -> None:
    table = plain_table("by", *VERDICTS)
    for by, verdicts in sorted(tally.by.items(), key=lambda each: [-each[1][verdict] for verdict in VERDICTS]):
        table.add_row(_text(by), *(str(verdicts[verdict] or "") for verdict in VERDICTS))
    console().print(table)
    echo()


def _sums(tally: Tally) -> Iterator[str]:
    yield (
        f"{count(tally.calls, 'call')} in {count(tally.files, 'file')}: {tally.blocked} blocked, {tally.asked} asked, "
        f"{tally.rewritten} rewritten, {tally.passed} passed"
    )
    if tally.blocked:
        yield f"of the blocked, {tally.ran} had not been stopped when they were recorded"
    if tally.invalid:
        yield f"{count(tally.invalid, 'call')} had an input that no tool takes, so no hook was asked"
    if tally.repeated:
        yield f"{tally.repeated} more were copies, and counted once"
    if tally.unread or tally.skipped:
        yield f"not read: {count(tally.unread, 'line')}, {count(tally.skipped, 'file')}"


def _hidden(redactor: Redactor | None, why: str, inputs: Any) -> tuple[str, Any]:
    """Return a reason and inputs without secrets."""
    if redactor is None:
        return why, inputs
    hidden, _ = redactor.output(ToolOutput(why, inputs))
    return hidden.text, hidden.details


def _text(text: str) -> Text:
    return Text(harmless(text))


def _outcomes(counts: Mapping[str, int]) -> str:
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{then} {times}" for then, times in counts.items())
