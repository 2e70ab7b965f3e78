"""A session: its entries, and the file that keeps them.

The file is JSON Lines, one entry a line, each written by one call and never changed: a kill at any moment loses at most
the unfinished last line.  The file is locked as long as it is open, so that two processes never write into it at a time.
Entries that the disk does not take wait in memory and are written as soon as there is room.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from agent_hooks.errors import SessionError, os_reason
from agent_hooks.host.session_file import SESSIONS_DIRECTORY, VERSION, lock, open_file, read_entries
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.storage.files import StorageError, create_atomically, write_atomically
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

    `report` is called with a text for the person when the file cannot be written, and when it can be written again.
    `notes`: texts for the person about the file that was opened; `home`: the directory whose `.agent/sessions` gets the
    files, `cwd` unless given.
    """

    def __init__(
        self,
        *,
        cwd: str,
        session_id: str | None = None,
        branched_from: str | None = None,
        entries: Iterable[Entry] = (),
        home: str | None = None,
    ) -> None:
        self.id = session_id or uuid.uuid4().hex
        self.home = os.path.abspath(home or cwd)
        self.path: Path | None = None
        self.notes: list[str] = []
        self.report: Callable[[str], object] = lambda text: None
        self._file: int | None = None
        # The bytes of whole lines in the file, and the lines that the file does not have yet.
        self._size = 0
        self._waiting = b""
        self._failing = False
        header = SessionHeader(version=VERSION, id=self.id, timestamp=now_iso(), cwd=cwd, branched_from=branched_from)
        self._entries: list[Entry] = [header, *entries]

    @classmethod
    def create(
        cls,
        cwd: str,
        *,
        branched_from: str | None = None,
        entries: Iterable[Entry] = (),
        home: str | None = None,
    ) -> Session:
        """Return a new session with a file of its own in `<home>/.agent/sessions/`; it begins with `entries`.

        That directory keeps itself out of git, so that no checkpoint holds a live session and no restore rewinds it.
        Raises `SessionError` when the file cannot be written; there is no file then.
        """
        session = cls(cwd=cwd, branched_from=branched_from, entries=entries, home=home)
        directory = Path(session.home, PROJECT_DIRECTORY, SESSIONS_DIRECTORY)
        path = directory / f"{datetime.now(UTC):%Y%m%dT%H%M%S}_{session.id}.jsonl"
        try:
            _make_directory(directory, session.home)
            # The file gets its name when it is whole: the entries of a long branch take several writes.
            new = path.with_suffix(".new")
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except (OSError, StorageError) as exc:
            reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
            raise SessionError(f"{path}: the session cannot be saved: {reason}") from None
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
    def open(cls, path: str | Path, cwd: str, *, home: str | None = None) -> Session:
        """Return the session that a file holds, to continue it.

        An unfinished last line is dropped, and `notes` says so, and that the session began in another directory.
        Raises `SessionError`, with the file and the line, when the file is not a session, and when another process has it
        open; the file is unchanged then.
        """
        path = Path(os.path.abspath(path))
        file = open_file(path)
        try:
            found = read_entries(file, path)
        # Any exception, also a cancellation, releases the lock and goes on to the caller.
        except BaseException:
            os.close(file)
            raise
        header = found.entries[0]
        assert isinstance(header, SessionHeader)
        session = cls(cwd=cwd, session_id=header.id, home=home)
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
        """Return, for every turn, the number of entries when it began; a turn is one response."""
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
        """Return the thinking level that was used last."""
        changes = (entry for entry in reversed(self._entries) if isinstance(entry, ThinkingLevelChangeEntry))
        return next((change.thinking_level for change in changes), "off")

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entry: Entry) -> None:
        """Add an entry; when the file cannot be written, `report` says so, and a later entry's write tries again."""
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
        """Add the entry that another model answers from here on."""
        self.append(ModelChangeEntry(timestamp=now_iso(), provider=provider, model_id=model_id))

    def add_thinking_level(self, level: str) -> None:
        """Add the entry that the model thinks more or less from here on."""
        self.append(ThinkingLevelChangeEntry(timestamp=now_iso(), thinking_level=level))

    def close(self) -> None:
        """Close the file; when entries are missing in it, `report` says so."""
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
        """Write the waiting lines after the last whole line; raises `OSError`."""
        assert self._file is not None
        # A killed process has left an unfinished line.
        if os.fstat(self._file).st_size != self._size:
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


def _make_directory(directory: Path, home: str) -> None:
    """Make the directory of the sessions, which git ignores; raises `OSError`.

    A project from elsewhere may bring links along, and no session may write a file anywhere else.
    """
    if not directory.resolve().is_relative_to(os.path.realpath(home)):
        raise OSError(errno.ELOOP, f"the directory is a link out of {home}")
    directory.mkdir(parents=True, exist_ok=True)
    ignored = directory / ".gitignore"
    try:
        # An earlier version could be killed before it had written the text.
        if stat.S_ISREG(ignored.lstat().st_mode) and ignored.read_bytes() in (b"", b"*"):
            write_atomically(str(ignored), b"*\n")
    except FileNotFoundError:
        with suppress(FileExistsError):
            create_atomically(str(ignored), b"*\n")


def now_iso() -> str:
    """Return the time in the form of entries: ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
