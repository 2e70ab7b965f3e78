"""The card of one call: all that its record files and its transcript say, read at the places that the index knows."""

from __future__ import annotations

import os
from typing import Any

from agent_hooks.errors import count
from agent_hooks.look.index import Index
from agent_hooks.look.index.columns import BY_ORDER, FROM_TRANSCRIPT, GONE, VERDICTS
from agent_hooks.look.rungs import questions, rungs
from agent_hooks.look.turns import turn_of
from agent_hooks.records.joining import Record
from agent_hooks.records.lines import VERSION, Decision, Line
from agent_hooks.records.reading import LONGEST, decode_line
from agent_hooks.storage.files import StorageError, open_regular


class CardMaker:
    """Makes the cards of one index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def card(self, row: int) -> dict[str, Any]:
        """Return the card of a row; raises `IndexError` for one that is gone or never was."""
        index, columns = self._index, self._index.book.columns
        if not 0 <= row < len(columns) or columns.verdict[row] == GONE:
            raise IndexError(f"there is no call in row {row}")
        ((call, lane, command, file, at),) = index.ask(
            "SELECT id, lane, command, file, at FROM calls WHERE row = ?", (row,)
        )
        places = [(file, at, "decision")] if file else []
        places += index.ask("SELECT file, at, kind FROM places WHERE row = ? ORDER BY file, at", (row,))
        record, sources, newer = self._record(call, places)
        place, flags = index.book.lanes[lane], columns.flags[row]
        lead: Line | None = record.lead if record.lines else None
        decision = record.decision
        previous, following = self._neighbours(row, lane)
        return {
            "id": call,
            "row": row,
            "time": columns.time[row],
            "client": place.client,
            "clientVersion": "" if lead is None else lead.client_version,
            "session": place.session,
            "agent": place.agent,
            "lane": lane,
            "cwd": "" if lead is None else lead.cwd,
            "project": place.project,
            "tool": index.book.tools[columns.tool[row]],
            "nativeTool": "" if lead is None else str(getattr(lead, "native_tool", "")),
            "command": command or index.book.tools[columns.tool[row]],
            "verdict": VERDICTS[columns.verdict[row]],
            **_reasons(decision),
            "trust": "" if lead is None else lead.trust,
            "joined": "none" if flags & FROM_TRANSCRIPT else "order" if flags & BY_ORDER else "id",
            "sources": sources,
            "input": None if decision is None else decision.input,
            "inputCut": decision is not None and decision.input_cut,
            "rungs": rungs(record, ""),
            "questions": questions(record.exchanges),
            "result": _result(record),
            "saw": None,
            "turn": turn_of(lead, columns.time[row]),
            "previous": previous,
            "next": following,
            "newer": newer,
        }

    def _record(self, id: str, places: list[tuple[int, int, str]]) -> tuple[Record, list[dict[str, Any]], str | None]:
        """Read the lines of a call; return them with their places, and a sentence about lines of a newer version."""
        record, sources, newer = Record(id), [], None
        paths = {each.file: each for each in self._index.sources.by_path.values()}
        for file, at, _ in places:
            source = paths.get(file)
            if source is None:
                continue
            line = decode_line(_line_at(source.path, at))
            if line is not None and line.v <= VERSION and line.id == id:
                record.add(line, os.path.basename(source.path))
                sources.append({"file": source.path, "line": line.n, "kind": "record"})
            if source.newer:
                newer = f"a record of a newer version: {count(source.newer, 'line')} of {source.path} are not shown"
        return record, sources, newer

    def _neighbours(self, row: int, lane: int) -> tuple[int | None, int | None]:
        """Return the calls before and after a call in its lane."""
        time = self._index.book.columns.time
        rows = [each for (each,) in self._index.ask("SELECT row FROM calls WHERE lane = ?", (lane,))]
        here = (time[row], row)
        before = max(((time[each], each) for each in rows if (time[each], each) < here), default=None)
        after = min(((time[each], each) for each in rows if (time[each], each) > here), default=None)
        return None if before is None else before[1], None if after is None else after[1]


def _line_at(path: str, at: int) -> bytes:
    """Return the line at an offset; empty if the file cannot be read any more."""
    try:
        with open_regular(path, path) as file:
            file.seek(at)
            return file.readline(LONGEST)
    except (StorageError, OSError):
        return b""


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
