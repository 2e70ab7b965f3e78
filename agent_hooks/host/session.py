"""A session: its entries, and the file that keeps them.

JSON Lines, one entry a line, each written by one call and never changed: a kill at any moment loses at most the
unfinished last line.  Above: agent.  Below: content.
"""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from pathlib import Path

from agent_hooks.content import Entry, Message, MessageEntry, ModelChangeEntry, SessionHeader, ThinkingLevelChangeEntry
from agent_hooks.errors import SessionError, os_reason
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.wire import to_json

VERSION = 1
SESSIONS_DIRECTORY = "sessions"


class Session:
    """The entries of one conversation, in memory and, when `path` is set, in a file."""

    def __init__(
        self, *, cwd: str, path: Path | None = None, file: int | None = None, session_id: str | None = None
    ) -> None:
        self.id = session_id or uuid.uuid4().hex
        self.path = path
        self._file = file
        self._entries: list[Entry] = []
        self.append(SessionHeader(version=VERSION, id=self.id, timestamp=now_iso(), cwd=cwd))

    @classmethod
    def create(cls, cwd: str) -> Session:
        """Return a new session with a file of its own in `<cwd>/.agent/sessions/`.

        That directory keeps itself out of git, so that no checkpoint can hold, and no restore rewind, a live session.
        Raises `SessionError` when it cannot be written.
        """
        session_id = uuid.uuid4().hex
        directory = Path(cwd, PROJECT_DIRECTORY, SESSIONS_DIRECTORY)
        path = directory / f"{datetime.now(UTC):%Y%m%dT%H%M%S}_{session_id}.jsonl"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            ignore = directory / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise SessionError(f"{path}: the session cannot be saved: {os_reason(exc)}") from None
        return cls(cwd=cwd, path=path, file=file, session_id=session_id)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries so far, the header first."""
        return tuple(self._entries)

    def append(self, entry: Entry) -> None:
        """Add an entry; raises `SessionError` when the file cannot take it (the entry is kept in memory)."""
        self._entries.append(entry)
        if self._file is None:
            return
        line = to_json(entry) + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as exc:
            raise SessionError(f"{self.path}: the session cannot be saved any more: {os_reason(exc)}") from None

    def add_message(self, message: Message) -> None:
        """Add a message of the conversation; raises as `append` does."""
        self.append(MessageEntry(timestamp=now_iso(), message=message))

    def add_model(self, provider: str, model_id: str) -> None:
        """Note which model answers from here on; raises as `append` does."""
        self.append(ModelChangeEntry(timestamp=now_iso(), provider=provider, model_id=model_id))

    def add_thinking_level(self, level: str) -> None:
        """Note how much the model thinks from here on; raises as `append` does."""
        self.append(ThinkingLevelChangeEntry(timestamp=now_iso(), thinking_level=level))

    def stop_saving(self) -> None:
        """Keep entries in memory only from here on."""
        self.close()
        self.path = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def now_iso() -> str:
    """Return the time as entries carry it: ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
