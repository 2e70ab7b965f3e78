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
from collections.abc import Iterable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from agent_hooks.errors import SettingsError
from agent_hooks.look.cards import CardMaker
from agent_hooks.look.hooks import hook_figures
from agent_hooks.look.index import Changes, Columns, Index
from agent_hooks.look.left_out import left_out
from agent_hooks.look.summary import Sums
from agent_hooks.settings import agent_home, merge_settings, user_home
from agent_hooks.trees import SourceTree

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor

DAYS = 30
"""The days that the numbers of the summary are about."""
_DAY = 86_400_000.0  # milliseconds


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
