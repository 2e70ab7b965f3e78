"""The card of one call: all that its record files and its transcript say, read at the places that the index knows."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from msgspec import Struct, field

from agent_hooks.errors import count
from agent_hooks.look.index import Index
from agent_hooks.look.index.columns import BY_ORDER, FROM_TRANSCRIPT, GONE, VERDICTS
from agent_hooks.look.index.files import DATABASE, line_at, recorded_call, shown_text, transcript_line
from agent_hooks.look.rungs import questions, rungs
from agent_hooks.look.turns import turn_of
from agent_hooks.records.joining import Record
from agent_hooks.records.lines import VERSION, Decision, Line, Turn, numbered
from agent_hooks.records.private import INPUT_LIMIT
from agent_hooks.records.reading import decode_line

# Characters of a result that a card shows.
_SAW = 64 * 1024


class Spot(NamedTuple):
    """The place of one line of a call: the file, the offset, its kind, and its number if the line has none itself."""

    file: int
    at: int
    kind: str
    line: int


class Seen(Struct):
    """A call as its transcript has it, redacted: its input, and the text of its result as the model saw it.

    `lost`: the files that do not have its lines any more.
    """

    input: Any = None
    cwd: str = ""
    text: str | None = None
    cut: bool = False
    lost: list[str] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)


class CardMaker:
    """Makes the cards of one index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def card(self, row: int) -> dict[str, Any]:
        """Return the card of a row; raises `IndexError` for one that is gone or never was."""
        index, columns = self._index, self._index.book.columns
        if not 0 <= row < len(columns) or columns.verdict[row] == GONE:
            raise IndexError(f"there is no call in row {row}")
        rows = index.ask("SELECT id, lane, call, command, file, at, end_file, end_at FROM calls WHERE row = ?", (row,))
        if not rows:
            # Another process has removed the call from the index.
            raise IndexError(f"there is no call in row {row}")
        ((name, lane, call, command, *ends),) = rows
        places = [Spot(ends[0], ends[1], "decision", 0), Spot(ends[2], ends[3], "result", 0)]
        sql = "SELECT file, at, kind, line FROM places WHERE row = ? ORDER BY file, at"
        places = [spot for spot in (*places, *(Spot(*each) for each in index.ask(sql, (row,)))) if spot.file]
        record, sources, newer, lost = self._record(name, [spot for spot in places if spot.kind not in ("call", "end")])
        alone = bool(columns.flags[row] & FROM_TRANSCRIPT)
        seen = self._seen(call, [spot for spot in places if spot.kind in ("call", "end")], alone=alone)
        sources += seen.sources
        place, flags = index.book.lanes[lane], columns.flags[row]
        lead: Line | None = record.lead if record.lines else None
        decision = record.decision
        previous, following = self._neighbours(row, lane)
        return {
            "id": numbered(name, index.number_of(row, name)),
            "row": row,
            "time": columns.time[row],
            "client": place.client,
            "clientVersion": "" if lead is None else lead.client_version,
            "session": place.session,
            "agent": place.agent,
            "lane": lane,
            "cwd": seen.cwd if lead is None else lead.cwd,
            "project": place.project,
            "tool": index.book.tools[columns.tool[row]],
            "nativeTool": "" if lead is None else str(getattr(lead, "native_tool", "")),
            "origin": "" if decision is None else decision.origin,
            "command": command or index.book.tools[columns.tool[row]],
            "verdict": VERDICTS[columns.verdict[row]],
            **_reasons(decision),
            "trust": "" if lead is None else lead.trust,
            "joined": _joined(flags, seen),
            "sources": sources,
            "input": seen.input if decision is None else decision.input,
            "inputCut": decision is not None and decision.input_cut,
            "rungs": rungs(record, seen.text or ""),
            "questions": questions(record.exchanges),
            "result": _result(record),
            "saw": None if seen.text is None else {"text": seen.text, "cut": seen.cut},
            "turn": turn_of(lead, record.result, self._saved(columns.turn[row])),
            "previous": previous,
            "next": following,
            "newer": newer,
            "lost": _lost([*lost, *seen.lost]),
        }

    def _record(self, id: str, places: list[Spot]) -> tuple[Record, list[dict[str, Any]], str | None, list[str]]:
        """Read the lines of a call.

        Return them with their places, a sentence about lines of a newer version, and the files that do not have its lines
        any more.
        """
        record, sources, newer, lost = Record(id), [], None, []
        paths = {each.file: each for each in self._index.sources.by_path.values()}
        for spot in places:
            source = paths.get(spot.file)
            if source is None:
                continue
            line = decode_line(line_at(source.path, spot.at))
            if line is not None and line.v <= VERSION and line.id == id:
                record.add(line, os.path.basename(source.path))
                sources.append({"file": source.path, "line": line.n, "kind": "record"})
            elif not source.newer:
                lost.append(source.path)
            if source.newer:
                newer = f"a record of a newer version: {count(source.newer, 'line')} of {source.path} are not shown"
        return record, sources, newer, lost

    def _seen(self, call: str, places: list[Spot], *, alone: bool) -> Seen:
        """Read the lines of a call in its transcript, redacted. `alone`: no record has the call."""
        seen = Seen()
        paths = {each.file: each for each in self._index.sources.by_path.values()}
        for spot in places:
            source = paths.get(spot.file)
            if source is None:
                continue
            line = transcript_line(source.kind, source.path, spot.at)
            number = None if source.kind == DATABASE else spot.line
            place = {"file": source.path, "line": number, "kind": "transcript"}
            if place not in seen.sources:
                seen.sources.append(place)
            if spot.kind == "call" and (found := recorded_call(source.kind, source.path, line, call)) is not None:
                cleaner = self._index.cleaner(INPUT_LIMIT)
                seen.input, _ = cleaner.value(dict(found.input))
                seen.cwd = cleaner.text(found.cwd or "")
            elif not line or (spot.kind == "call" and alone):
                seen.lost.append(source.path)
            if (text := shown_text(source.kind, source.path, line, call)) is not None:
                seen.cut = len(text) > _SAW
                seen.text = self._index.cleaner(_SAW).text(text, _SAW)
        return seen

    def _saved(self, turn: int) -> list[Turn]:
        """Return the lines that have the files of a turn, one for each working tree."""
        sql = """SELECT turns.id, path, at FROM saved JOIN files USING (file) JOIN turns USING (turn)
            WHERE turn = ? ORDER BY saved.file, at"""
        found = self._index.ask(sql, (turn,)) if turn else []
        lines = [(name, decode_line(line_at(path, at))) for name, path, at in found]
        # The file may have been replaced since, and then another turn may be at this place.
        return [line for name, line in lines if isinstance(line, Turn) and line.turn_id == name]

    def _neighbours(self, row: int, lane: int) -> tuple[int | None, int | None]:
        """Return the calls before and after a call in its lane."""
        time = self._index.book.columns.time
        rows = self._index.book.rows_of(lane)
        here = (time[row], row)
        before = max(((time[each], each) for each in rows if (time[each], each) < here), default=None)
        after = min(((time[each], each) for each in rows if (time[each], each) > here), default=None)
        return None if before is None else before[1], None if after is None else after[1]


def _lost(paths: list[str]) -> str | None:
    """Return a sentence about files that do not have the lines of a call any more."""
    names = ", ".join(dict.fromkeys(paths))
    return (
        f"a part of this call cannot be read any more, because its file was removed or changed: {names}"
        if paths
        else None
    )


def _joined(flags: int, seen: Seen) -> str:
    if flags & FROM_TRANSCRIPT or not seen.sources:
        return "none"
    return "order" if flags & BY_ORDER else "id"


def _reasons(decision: Decision | None) -> dict[str, Any]:
    if decision is None:
        return {"cause": "", "reason": "", "by": [], "rule": "", "remedy": ""}
    by = [name for name in decision.by.split(", ") if name]
    return {
        "cause": decision.cause,
        "reason": decision.reason,
        "by": by or list(decision.rewritten_by),
        "rule": decision.rule,
        "remedy": decision.remedy,
    }


def _result(record: Record) -> dict[str, Any] | None:
    result = record.result
    if result is None:
        return None
    names = ("status", "size", "ms", "error", "redacted")
    return {name: getattr(result, name) for name in names}
