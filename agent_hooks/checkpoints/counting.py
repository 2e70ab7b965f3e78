"""The number of checkpoints of a session, for a line that is drawn again and again."""

from __future__ import annotations

from contextlib import suppress

from agent_hooks.checkpoints.marks import mark_at, mark_names
from agent_hooks.turn_notes import store_of, working_tree


class CheckpointCount:
    """Counts the turns of a session before which the files were saved; a mark is read once only."""

    def __init__(self) -> None:
        self._store = ""
        # The session of each mark at the beginning of a turn, by its name; empty for any other mark.
        self._sessions: dict[str, str] = {}

    def of(self, cwd: str, session_id: str) -> int | None:
        """Return the number of a session's checkpoints in the working tree of `cwd`, `None` if there is no such tree."""
        top = working_tree(cwd)
        if top is None:
            return None
        if (store := store_of(top)) != self._store:
            self._store, self._sessions = store, {}
        names: list[str] = []
        # A store that cannot be read has no number.
        with suppress(OSError):
            names = mark_names(store)
        # Old checkpoints are removed with their marks.
        self._sessions = {name: session for name in names if (session := self._session(name)) is not None}
        return list(self._sessions.values()).count(session_id)

    def _session(self, name: str) -> str | None:
        if name in self._sessions:
            return self._sessions[name]
        if (mark := mark_at(self._store, name)) is None:
            return None
        return mark.work.session_id if mark.kind == "begin" else ""
