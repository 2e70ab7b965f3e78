"""The view: all questions of the page, answered from the index.

    view = View(agent_home())
    view.refresh()
    view.summary()["calls"]

It is safe for threads, and every answer is plain data.  It changes nothing but the index.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from agent_hooks.errors import SettingsError, count
from agent_hooks.look.cards import CardMaker
from agent_hooks.look.hooks import hook_figures, is_gone
from agent_hooks.look.index import Changes, Index
from agent_hooks.look.index.columns import (
    ASKED,
    BLOCK,
    CHANGED_FILES,
    CHUNK,
    FAILED,
    GONE,
    OVERRULED,
    REDACTED,
    REWRITTEN,
    Columns,
)
from agent_hooks.look.index.files import DATABASE, Source
from agent_hooks.settings import agent_home, merge_settings, user_home
from agent_hooks.trees import SourceTree

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor


DAYS = 30
"""The days that the numbers of the summary are about."""
_DAY = 86_400_000.0  # milliseconds


# Entries of one kind; the rest is counted.
_MOST = 20
_FLAGS = {"asked": ASKED, "failed": FAILED, "rewritten": REWRITTEN, "redacted": REDACTED, "files": CHANGED_FILES}
# Milliseconds after which the numbers are counted again even without a change, as the days go on.
_FRESH = 60_000.0


class View:
    """Answers about the recorded calls of one agent home, the person's own unless given.

    `user`: the home directory below which clients keep their transcripts, the person's own if `home` is; empty for none;
    `cwd`: the directory whose project comes first.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        user: str | os.PathLike[str] | None = None,
        cwd: str | os.PathLike[str] = "",
    ) -> None:
        self._cwd = os.path.realpath(cwd) if cwd else ""
        self._lock = RLock()
        own = agent_home() if home is None else os.path.abspath(home)
        if user is None and own == agent_home():
            user = user_home()
        self._index = Index(own, os.path.abspath(user) if user else None, _redactor(own))
        self._sums = Sums()
        self._cards = CardMaker(self._index)

    def close(self) -> None:
        """Close the index."""
        with self._lock:
            self._index.close()

    def refresh(self, seconds: float | None = None) -> Changes:
        """Read what was written since the last time; after `seconds`, the rest is left for the next refresh."""
        with self._lock:
            return self._index.refresh(seconds)

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the last 30 days, all lanes and tools, and what was left out and why."""
        with self._lock:
            book = self._index.book
            since = time.time() * 1000 - DAYS * _DAY
            lanes = [lane for lane in book.lanes if lane.calls]
            return {
                "days": DAYS,
                "here": _innermost((lane.project for lane in lanes), self._cwd),
                "sessions": len({(lane.client, lane.session) for lane in lanes if lane.last >= since}),
                **self._sums.of(book.columns, since, book.version),
                "first": min((lane.first for lane in lanes), default=None),
                "last": max((lane.last for lane in lanes), default=None),
                "lanes": [_lane(number, lane) for number, lane in enumerate(book.lanes)],
                "tools": list(book.tools),
                "left_out": left_out(self._index),
                "version": book.version,
            }

    def columns(self, after: int = 0) -> Columns:
        """Return the columns of all calls from row `after` on."""
        with self._lock:
            return self._index.book.columns.since(after)

    def command(self, rows: Sequence[int]) -> list[str]:
        """Return one line for each call: the tool and its input; empty for a row that is gone."""
        with self._lock:
            sql = "SELECT row, command FROM calls WHERE row IN (SELECT value FROM json_each(?))"
            texts = dict(self._index.ask(sql, (json.dumps(list(rows)),)))
            tools, columns = self._index.book.tools, self._index.book.columns
            # A call without a decision has its tool alone.
            return [texts[row] or tools[columns.tool[row]] if row in texts else "" for row in rows]

    def search(self, text: str, limit: int = 1000) -> list[int]:
        """Return the rows whose command, tool, reason or hook holds all words, the newest first."""
        with self._lock:
            return self._index.search(text, limit)

    def row_of(self, id: str) -> int | None:
        """Return the row of a call; `None` if no call has this id."""
        with self._lock:
            return self._index.row_of(id)

    def card(self, row: int) -> dict[str, Any]:
        """Return all about one call; raises `IndexError` for a row that is gone or never was."""
        with self._lock:
            return self._cards.card(row)

    def hooks(self, since: float = 0.0) -> list[dict[str, Any]]:
        """Return the figures of each hook, also of those that never ran; `since`: milliseconds since 1970."""
        with self._lock:
            return hook_figures(self._index, since)

    def overruled(self, since: float = 0.0) -> int:
        """Return the number of calls that were blocked and ran all the same; `since`: milliseconds since 1970."""
        with self._lock:
            return _counted(self._index.book.columns, since)["overruled"]


def _redactor(home: str) -> Redactor:
    """Return the redactor of transcripts, with the person's own patterns."""
    # Imported here, because compiling its patterns takes a while.
    from agent_hooks.redaction import Redactor

    try:
        return Redactor(patterns=merge_settings([SourceTree(home)]).redaction.patterns)
    except SettingsError:
        # The agent says so at its start; the page hides what has a known form.
        return Redactor()


def _innermost(projects: Iterable[str], cwd: str) -> str:
    """Return the innermost of the projects that a directory lies in, empty if there is none."""
    around = (project for project in projects if project and f"{cwd}/".startswith(f"{project.rstrip('/')}/"))
    return max(around, key=len, default="")


def _lane(number: int, lane: Any) -> dict[str, Any]:
    project = os.path.basename(lane.project.rstrip("/"))
    agent = "" if lane.agent == "main" else lane.agent
    label = " ".join(part for part in (project, lane.client, lane.session[:8], agent) if part)
    return {
        "id": number,
        "client": lane.client,
        "session": lane.session,
        "agent": lane.agent,
        "label": label,
        "project": lane.project,
        "first": lane.first,
        "last": lane.last,
        "calls": lane.calls,
    }


class Sums:
    """The numbers, which are counted again only after a change."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._version = -1
        self._since = 0.0

    def of(self, columns: Columns, since: float, version: int) -> dict[str, int]:
        """Return the numbers of the calls since a time in milliseconds."""
        if version != self._version or since - self._since > _FRESH:
            self._known = _counted(columns, since)
            self._version, self._since = version, since
        return self._known


def _counted(columns: Columns, since: float) -> dict[str, int]:
    verdicts, flags = Counter[int](), Counter[int]()
    for begin in range(0, len(columns), CHUNK):
        part = slice(begin, begin + CHUNK)
        times, kinds, bits = columns.time[part], columns.verdict[part].tobytes(), columns.flags[part].tobytes()
        if min(times) < since or GONE in kinds:
            chosen = [at for at, time in enumerate(times) if time >= since and kinds[at] != GONE]
            kinds, bits = bytes(kinds[at] for at in chosen), bytes(bits[at] for at in chosen)
        _count(kinds, verdicts)
        _count(bits, flags)
    with_flag = {name: sum(number for bits, number in flags.items() if bits & bit) for name, bit in _FLAGS.items()}
    return {"calls": sum(verdicts.values()), "stopped": verdicts[BLOCK], "overruled": verdicts[OVERRULED], **with_flag}


def _count(data: bytes, counts: Counter[int]) -> None:
    for value in _values(data):
        counts[value] += data.count(value)


def _values(data: bytes) -> Iterable[int]:
    return set(data)


def left_out(index: Index) -> list[dict[str, str]]:
    """Return the entries, each with `what`, `why` and `place`."""
    entries = [*_about_index(index), *_about_files(index), *_about_hooks(index)]
    shown = entries[:_MOST]
    if len(entries) > _MOST:
        more = f"{len(entries) - _MOST} more"
        shown.append({"what": more, "why": "only the first are named", "place": ""})
    return shown


def _about_index(index: Index) -> Iterator[dict[str, str]]:
    if index.problem:
        yield {"what": "the index is not kept", "why": index.problem, "place": ""}


def _about_files(index: Index) -> Iterator[dict[str, str]]:
    for source in list(index.sources.by_path.values()):
        for what, why in _of_file(source):
            yield {"what": what, "why": why, "place": source.path}


def _of_file(source: Source) -> Iterator[tuple[str, str]]:
    if source.problem:
        yield "the rest of the file", source.problem
    elif source.kind != DATABASE and source.size > source.offset:
        yield f"the last {count(source.size - source.offset, 'byte')}", "the file ends in a part of a line"
    if source.bad:
        yield count(source.bad, "line"), "cannot be read"
    if source.newer:
        why = "a newer version of agent_hooks wrote them; update agent_hooks to see them"
        yield count(source.newer, "line"), why
    if source.ahead:
        why = "their time lies in the future, so they stand at the time at which their file was last written"
        yield f"the time of {count(source.ahead, 'line')}", why


def _about_hooks(index: Index) -> Iterator[dict[str, str]]:
    for (path,) in index.ask("SELECT DISTINCT path FROM figures WHERE path != ''"):
        if is_gone(path):
            why = (
                "the file is not there any more, so its code cannot be looked at; its answers are as they were recorded"
            )
            yield {"what": "the code of a hook", "why": why, "place": path}
