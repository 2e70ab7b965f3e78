"""A session: its entries, and the file that keeps them.

JSON Lines, one entry a line, each written by one call and never changed: a kill at any moment loses at most the
unfinished last line.  The file is locked for as long as it is open, so that two processes never write into each other.
What the disk does not take waits in memory and is written as soon as there is room.
Above: agent, lifecycle.  Below: session_file, content.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from agent_hooks.errors import SessionError, os_reason
from agent_hooks.host.session_file import SESSIONS_DIRECTORY, VERSION, lock, open_file, read_entries
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.values.content import (
    AssistantMessage,
    Entry,
    Message,
    MessageEntry,
    ModelChangeEntry,
    SessionHeader,
    ThinkingLevelChangeEntry,
)
from agent_hooks.values.wire import to_json


class Session:
    """The entries of one conversation, in memory and, when `path` is set, in a file.

    `tell`: hears, as a text for the person, that the file cannot be written, and that it can be again.
    """

    def __init__(
        self,
        *,
        cwd: str,
        session_id: str | None = None,
        branched_from: str | None = None,
        entries: Iterable[Entry] = (),
    ) -> None:
        self.id = session_id or uuid.uuid4().hex
        self.path: Path | None = None
        self.notes: list[str] = []  # what the person should know of the file that was opened
        self.report: Callable[[str], object] = lambda text: None
        self._file: int | None = None
        self._size = 0  # bytes of whole lines in the file
        self._waiting = b""  # lines that the file does not have yet
        self._failing = False
        header = SessionHeader(version=VERSION, id=self.id, timestamp=now_iso(), cwd=cwd, branched_from=branched_from)
        self._entries: list[Entry] = [header, *entries]

    @classmethod
    def create(cls, cwd: str, *, branched_from: str | None = None, entries: Iterable[Entry] = ()) -> Session:
        """Return a new session with a file of its own in `<cwd>/.agent/sessions/`; it begins with `entries`.

        That directory keeps itself out of git, so that no checkpoint can hold, and no restore rewind, a live session.
        Raises `SessionError` when it cannot be written; then there is no file.
        """
        session = cls(cwd=cwd, branched_from=branched_from, entries=entries)
        directory = Path(os.path.abspath(cwd), PROJECT_DIRECTORY, SESSIONS_DIRECTORY)
        path = directory / f"{datetime.now(UTC):%Y%m%dT%H%M%S}_{session.id}.jsonl"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            ignore = directory / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            new = path.with_suffix(".new")  # a session file is there when it is whole, also of a long branch
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise SessionError(f"{path}: the session cannot be saved: {os_reason(exc)}") from None
        session.path, session._file = new, file
        try:
            lock(file, path)
            session._waiting = b"".join(to_json(entry) + b"\n" for entry in session._entries)
            session._write()
            session.path = new.rename(path)
        except (OSError, SessionError) as exc:
            session._discard()
            reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
            raise SessionError(f"{path}: the session cannot be saved: {reason}") from None
        return session

    @classmethod
    def open(cls, path: str | Path, cwd: str) -> Session:
        """Return the session that a file holds, to go on with it; `notes` says what is odd about the file.

        A last line that was not finished is dropped.  Raises `SessionError` that names the file, and the line if one is
        wrong, and says so when another process works on it; then the file is as it was.
        """
        path = Path(os.path.abspath(path))
        file = open_file(path)
        try:
            found = read_entries(file, path)
        except BaseException:  # whatever it is goes on its way, without the lock
            os.close(file)
            raise
        header = found.entries[0]
        assert isinstance(header, SessionHeader)
        session = cls(cwd=cwd, session_id=header.id)
        session.path, session._file, session._entries = path, file, found.entries
        session._size, session._waiting = found.size, found.unwritten
        if found.dropped:
            session.notes.append(f"{path}:{len(found.entries) + 1}: the last line was not finished, and is dropped")
        if os.path.realpath(header.cwd) != os.path.realpath(cwd):
            session.notes.append(f"{path}: this session was begun in {header.cwd}")
        return session

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries so far, the header first."""
        return tuple(self._entries)

    def since(self, index: int) -> list[Entry]:
        """Return the entries from `index` on."""
        return self._entries[index:]

    def turns(self) -> list[int]:
        """Return, for every turn, how many entries there were when it began: one turn, one response."""
        return [
            index
            for index, entry in enumerate(self._entries)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
        ]

    def last_model(self) -> str | None:
        """Return the model that answered last, as `provider:id`."""
        changes = (entry for entry in reversed(self._entries) if isinstance(entry, ModelChangeEntry))
        return next((f"{change.provider}:{change.model_id}" for change in changes), None)

    def last_thinking_level(self) -> str:
        """Return how much the model thought last."""
        changes = (entry for entry in reversed(self._entries) if isinstance(entry, ThinkingLevelChangeEntry))
        return next((change.thinking_level for change in changes), "off")

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entry: Entry) -> None:
        """Add an entry; when the file cannot take it now, that is told, and it is written with a later one."""
        self._entries.append(entry)
        if self._file is None:
            return
        self._waiting += to_json(entry) + b"\n"
        try:
            self._write()
        except OSError as exc:
            if not self._failing:
                self.report(
                    f"{self.path}: cannot be written: {os_reason(exc)}; going on, and trying again with each entry"
                )
            self._failing = True
        else:
            if self._failing:
                self.report(f"{self.path}: is written again, and nothing is missing")
            self._failing = False

    def add_message(self, message: Message) -> None:
        """Add a message of the conversation."""
        self.append(MessageEntry(timestamp=now_iso(), message=message))

    def add_model(self, provider: str, model_id: str) -> None:
        """Note which model answers from here on."""
        self.append(ModelChangeEntry(timestamp=now_iso(), provider=provider, model_id=model_id))

    def add_thinking_level(self, level: str) -> None:
        """Note how much the model thinks from here on."""
        self.append(ThinkingLevelChangeEntry(timestamp=now_iso(), thinking_level=level))

    def close(self) -> None:
        """Close the file; when entries are missing in it, that is told."""
        if self._file is None:
            return
        if self._failing:
            try:
                self._write()
            except OSError:
                self.report(f"{self.path}: {self._waiting.count(NEWLINE)} entries could not be written")
        os.close(self._file)
        self._file = None

    def _discard(self) -> None:
        """Close and delete the file."""
        assert self._file is not None
        assert self.path is not None
        os.close(self._file)
        self._file = None
        self.path.unlink(missing_ok=True)

    def _write(self) -> None:
        """Write what waits, after the last whole line; raises `OSError`."""
        assert self._file is not None
        if os.fstat(self._file).st_size != self._size:  # an unfinished line, of a killed process
            os.ftruncate(self._file, self._size)
        lines, written = self._waiting, 0
        try:
            while written < len(lines):
                written += os.write(self._file, lines[written:])
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += written
        self._waiting = b""


NEWLINE = b"\n"


def now_iso() -> str:
    """Return the time as entries carry it: ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
