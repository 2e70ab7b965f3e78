"""Joins the lines of records: one `Record` for each call or event, from all files of its session.

    reader = Reader(records_directory(agent_home()))
    for record in reader.records(Wanted(verdict="block")):
        print(record.time, record.tool, record.verdict)
    print(reader.unread)

1. The two halves of a call may stand in files of different processes, so the files of one session are read together.
   A decision begins another call where a call with its id was judged before.
2. Sessions are read in the order of their first files, and merged by time.  Only sessions that overlap are in memory at
   once, so a large directory is read as a stream.
3. A line that cannot be read, and a line of a later version, is passed over and counted.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from agent_hooks.records.files import files_of, parse_name, record_files
from agent_hooks.records.lines import (
    VERSION,
    Answer,
    AnyLine,
    Decision,
    Edit,
    Line,
    Observed,
    Prompt,
    Question,
    Remembered,
    Result,
    Run,
    Step,
    Turn,
    Unlock,
    begins_call,
    numbered,
)
from agent_hooks.records.reading import decode_line, raw_lines
from agent_hooks.storage.files import StorageError
from agent_hooks.values.events import TRIAL

VERDICTS = ("pass", "allow", "ask", "block", "overruled", "aborted", "cancelled", "unknown")
"""The verdicts of records.

A call is `overruled` if it was blocked and ran all the same, and `unknown` without its decision.  A session action is
`cancelled`.
"""
CHANGED = "changed"
"""The word by which records are selected whose input, result or text a hook changed."""
_SILENT = ("silent", "allow")
_CHANGING = ("rewrite", "replace", "changed")
_DIGEST = 16


class Exchange(Struct):
    """A question and its answer; one of them is missing where its line is."""

    question: Question | None = None
    answer: Answer | None = None


class Record(Struct):
    """A call with its halves and questions, or the line of another event.

    Its lines have one id, which is `id`.  From the second call with that id on, the number follows.  `lines`: the places
    of the lines, as file name and number.  `overruled`: the call was blocked, and the result of a tool came.
    """

    id: str
    decision: Decision | None = None
    result: Result | None = None
    observed: Observed | None = None
    other: Line | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    lines: list[tuple[str, int]] = field(default_factory=list)
    overruled: bool = False

    def add(self, line: AnyLine, file: str) -> None:
        """Add a line; of two lines for one place, the first counts."""
        self.lines.append((file, line.n))
        if isinstance(line, Question):
            self.exchanges.append(Exchange(line))
        elif isinstance(line, Answer):
            self._add_answer(line)
        elif isinstance(line, Decision):
            self.decision = self.decision or line
        elif isinstance(line, Result):
            self._add_result(line)
        elif isinstance(line, Observed):
            self.observed = self.observed or line
        else:
            self.other = self.other or line

    def _add_result(self, line: Result) -> None:
        """Add a result.  A blocked call has one from us, and one of a tool only if something else let it run."""
        if self.result is not None and self.result.status == "blocked" and line.status == "ok":
            self.overruled = True
        if self.result is None or self.overruled:
            self.result = line

    def _add_answer(self, line: Answer) -> None:
        """Add an answer to the newest question of its number; another agent's two questions about a call may share it."""
        for exchange in reversed(self.exchanges):
            if exchange.question is not None and exchange.question.number == line.number and exchange.answer is None:
                exchange.answer = line
                return
        self.exchanges.append(Exchange(None, line))

    @property
    def lead(self) -> Line:
        """The line that says most about the record: the decision, if it is there."""
        line = self.decision or self.other or self.result or self.observed
        if line is None:
            exchange = self.exchanges[0]
            line = exchange.question or exchange.answer
        assert line is not None
        return line

    @property
    def time(self) -> datetime:
        """The time of the leading line, with its zone."""
        return aware(self.lead.time)

    @property
    def is_call(self) -> bool:
        """Whether this is a tool call."""
        return self.other is None and bool(self.tool)

    @property
    def is_trial(self) -> bool:
        """Whether this is the sample call of `agent-hooks doctor`, and none of the agent."""
        return self.lead.mode == "bridge" and self.lead.session.startswith(f"{TRIAL} ")

    @property
    def tool(self) -> str:
        """The name of the tool of a call; empty for other events, and for the dialog of a handler."""
        return str(getattr(self.lead, "tool", ""))

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        given = self.decision or self.other
        if given is None:
            return "unknown" if self.is_call else "pass"
        if self.overruled:
            return "overruled"
        verdict = str(getattr(given, "verdict", "pass"))
        return "pass" if verdict == "rewrite" else verdict

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all lines, in order."""
        parts = (self.decision or self.other, self.result, self.observed)
        return tuple(step for line in parts if line is not None for step in getattr(line, "steps", ()))

    @property
    def changed(self) -> bool:
        """Whether a hook or transformer changed the input, the result or the text."""
        if self.decision is not None and self.decision.rewrite:
            return True
        if isinstance(self.other, Prompt) and self.other.verdict == "rewrite":
            return True
        return any(step.answer in _CHANGING for step in self.steps)

    @property
    def by(self) -> str:
        """The hooks and guards behind the verdict or the change, with the rule, for a table."""
        lead = self.decision or self.other
        names = str(getattr(lead, "by", "")) or ", ".join(getattr(lead, "rewritten_by", ()))
        if not names:
            names = ", ".join(dict.fromkeys(step.by for step in self.steps if step.answer not in _SILENT))
        rule = str(getattr(lead, "rule", ""))
        return f"{names} ({rule})" if rule and rule not in names else names

    @property
    def signers(self) -> list[Step]:
        """The steps that gave an answer, in order: those that stopped, asked or changed, or failed."""
        return [step for step in self.steps if step.answer not in _SILENT]

    @property
    def notable(self) -> bool:
        """Whether a hook or the person had a part in it, or a file that controls the agent changed."""
        if self.verdict not in ("pass", "unknown") or self.changed or self.exchanges:
            return True
        return isinstance(self.other, Edit | Unlock | Remembered) or (
            isinstance(self.other, Run) and bool(self.other.go_on)
        )


def aware(time: datetime) -> datetime:
    """Return a time with a zone; one without is taken as UTC."""
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


class Wanted(Struct, frozen=True, kw_only=True):
    """A selection of records; an empty field selects all.

    `since`: the earliest time; `verdict`: one of `VERDICTS` or `CHANGED`; `tool`: a name or pattern, ours or the other
    agent's; `hook`: a part of the name of a hook, guard or rule that gave an answer; `session`, `id`: beginnings.
    """

    since: datetime | None = None
    verdict: str = ""
    tool: str = ""
    hook: str = ""
    session: str = ""
    client: str = ""
    id: str = ""

    def holds(self, record: Record) -> bool:
        """Tell whether a record is selected."""
        lead = record.lead
        return (
            (self.since is None or record.time >= self.since)
            and (not self.verdict or self._is_verdict(record))
            and lead.session.startswith(self.session)
            and (not self.client or lead.client == self.client)
            and record.id.startswith(self.id)
            and (not self.tool or self._is_tool(record))
            and (not self.hook or self._is_by(record))
        )

    def _is_verdict(self, record: Record) -> bool:
        return record.changed if self.verdict == CHANGED else record.verdict == self.verdict

    def _is_tool(self, record: Record) -> bool:
        names = (record.tool, str(getattr(record.lead, "native_tool", "")))
        pattern = self.tool.lower()
        return any(name and fnmatchcase(name.lower(), pattern) for name in names)

    def _is_by(self, record: Record) -> bool:
        return self.hook in record.by or any(self.hook in text for step in record.signers for text in _names(step))


def _names(step: Step) -> tuple[str, ...]:
    return step.by, step.file, step.rule, step.handler


class Unread(Struct):
    """The lines and files that could not be read: `newer` lines are those of a later version."""

    lines: int = 0
    newer: int = 0
    # The reasons, with the files' paths.
    files: list[str] = field(default_factory=list)


class Group(NamedTuple):
    """The files of one session; `start`: the beginning of the first in milliseconds, `last`: the last write, seconds."""

    start: int
    stem: str
    paths: list[str]
    last: float


def groups(directory: str) -> list[Group]:
    """Return the record files of a directory by session, in the order of the first file.

    Raises `StorageError` when the directory cannot be listed.
    """
    found: dict[str, Group] = {}
    try:
        paths = record_files(directory)
    except OSError as exc:
        raise StorageError(f"{directory} cannot be read: {exc.strerror}") from None
    for path in paths:
        parsed = parse_name(os.path.basename(path))
        assert parsed is not None
        stem, _, start = parsed
        try:
            last = os.lstat(path).st_mtime
        except OSError:
            # It was removed meanwhile.
            continue
        if stem not in found:
            found[stem] = Group(start, stem, [], 0.0)
        group = found[stem]
        group.paths.append(path)
        found[stem] = group._replace(last=max(group.last, last))
    return sorted(found.values())


class Reader:
    """Reads the records of a directory; `unread` counts the lines and files that were passed over."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.unread = Unread()

    def records(self, wanted: Wanted | None = None) -> Iterator[Record]:
        """Yield the selected records, the newest last.  Raises `StorageError` when the directory cannot be listed."""
        wanted = wanted or Wanted()
        selected = [group for group in groups(self.directory) if _may_hold(group, wanted)]
        yield from _merged(selected, lambda group: self.of_group(group, wanted))

    def newest(self, wanted: Wanted, *, notable: bool = True) -> Record | None:
        """Return the newest selected call of an agent; `None` without one.  `notable`: only calls that are."""
        best: Record | None = None
        for group in sorted(groups(self.directory), key=lambda group: -group.last):
            if best is not None and group.last < best.time.timestamp():
                break
            for record in self.of_group(group, wanted):
                if not record.is_call or record.is_trial or (notable and not record.notable):
                    continue
                if best is None or record.time >= best.time:
                    best = record
        return best

    def of_group(self, group: Group, wanted: Wanted) -> list[Record]:
        """Return the selected records of one session, in the order of time."""
        records: list[Record] = []
        # The last record with an id, and the number of records with an id that is used again.
        found: dict[str, Record] = {}
        numbers: dict[str, int] = {}
        # The bytes of a line have its id, so most of the others are not decoded.
        own = wanted.id.partition(".")[0]
        part = own.encode() if own.isascii() and own.replace("-", "").isalnum() else b""
        for path in group.paths:
            name = os.path.basename(path)
            try:
                for _, data in raw_lines(path):
                    if part in data and (line := self._decoded(data)) is not None:
                        record = found.get(line.id)
                        if record is None or (record.decision is not None and begins_call(line)):
                            number = 1 if record is None else numbers.get(line.id, 1) + 1
                            if record is not None:
                                numbers[line.id] = number
                            record = found[line.id] = Record(numbered(line.id, number))
                            records.append(record)
                        record.add(line, name)
            except StorageError as exc:
                self.unread.files.append(str(exc))
        return sorted((record for record in records if wanted.holds(record)), key=_order)

    def turn(self, record: Record) -> list[Turn]:
        """Return the lines with the files that the turn of a record has changed, one for each working tree.

        Raises `StorageError` when a file of the session cannot be read.
        """
        turn = record.lead.turn_id
        found = []
        for path in files_of(self.directory, record.lead.session) if turn else ():
            for _, data in raw_lines(path):
                # Few lines hold these texts, and the others are not decoded.
                line = decode_line(data) if b'"saved"' in data and turn.encode() in data else None
                if isinstance(line, Turn) and (line.event, line.turn_id) == ("saved", turn):
                    found.append(line)
        return found

    def _decoded(self, data: bytes) -> AnyLine | None:
        line = decode_line(data)
        if line is not None and line.v <= VERSION:
            return line
        if line is not None or _is_newer(data):
            self.unread.newer += 1
        else:
            self.unread.lines += 1
        return None


def _order(record: Record) -> tuple[datetime, int]:
    return record.time, record.lead.clock


def _may_hold(group: Group, wanted: Wanted) -> bool:
    """Tell whether the files of a group may hold selected records, from their names and times alone."""
    if wanted.since is not None and group.last < wanted.since.timestamp():
        return False
    # The name of a session that is no plain name ends in a digest.
    hashed = len(group.stem) > _DIGEST and group.stem[-_DIGEST - 1] == "-"
    return hashed or group.stem.startswith(wanted.session)


def _merged(found: Iterable[Group], read: Callable[[Group], Iterable[Record]]) -> Iterator[Record]:
    """Yield the records of groups, merged by time; a group is read when the time of its first file has come."""
    heap: list[tuple[tuple[datetime, int], int, Iterator[Record], Record]] = []

    def push(number: int, records: Iterator[Record]) -> None:
        if (record := next(records, None)) is not None:
            heapq.heappush(heap, (_order(record), number, records, record))

    def pop() -> Record:
        _, number, records, record = heapq.heappop(heap)
        push(number, records)
        return record

    for number, group in enumerate(found):
        while heap and heap[0][3].time.timestamp() * 1000 < group.start:
            yield pop()
        push(number, iter(read(group)))
    while heap:
        yield pop()


class _Version(Struct):
    v: int


_version = msgspec.json.Decoder(_Version)


def _is_newer(data: bytes) -> bool:
    try:
        return _version.decode(data).v > VERSION
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
