"""Read session files: all lines, or an error that names the first wrong line."""

from __future__ import annotations

import gc
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from glob import escape, glob
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_hooks.errors import SessionError, os_reason
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.storage.locks import try_lock
from agent_hooks.values.content import Entry, MessageEntry, SessionHeader, UserMessage

VERSION = 1
SESSIONS_DIRECTORY = "sessions"
_decoder = msgspec.json.Decoder(Entry)
# The errors of decoding.
_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError)


class ReadEntries(NamedTuple):
    """The content of a session file.

    `size`: bytes of whole lines; `unwritten`: a last line that lacks only its newline, to be written again; `dropped`:
    whether there was an unfinished last line.
    """

    entries: list[Entry]
    size: int
    unwritten: bytes
    dropped: bool


class SessionSummary(NamedTuple):
    """A session in the list that a person chooses from.

    `written`: the time of the last write, ISO 8601; `first_text`, `last_text`: the first prompt and the last one;
    `messages`: how many there are; `session_id`: the id in the header.
    """

    path: str
    written: str
    first_text: str
    last_text: str
    messages: int
    session_id: str


def open_file(path: Path) -> int:
    """Open and lock a session file; raises `SessionError`."""
    try:
        # Opening a pipe would wait for its other end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SessionError(f"{path}: is not a regular file, so no session")
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as exc:
        raise SessionError(f"{path}: the session cannot be opened: {os_reason(exc)}") from None
    # The path contains a null character.
    except ValueError as exc:
        raise SessionError(f"{path}: the session cannot be opened: {exc}") from None
    try:
        lock(file, path)
    # The file is closed, and the exception goes on to the caller.
    except BaseException:
        os.close(file)
        raise
    return file


def lock(file: int, path: Path) -> None:
    """Keep other processes out until the file is closed; raises `SessionError` when one is in already."""
    try:
        free = try_lock(file)
    except OSError:
        # The file system has no locks, and a session without a lock is better than none.
        return
    if not free:
        raise SessionError(f"{path}: another process works on this session; end that one first")


def read_entries(file: int, path: Path) -> ReadEntries:
    """Read all entries of an open file; raises `SessionError` with the line when an entry is wrong."""
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        data = reader.read()
    *lines, last = data.split(b"\n")
    with paused_collector():
        entries = [_entry(line, number, path) for number, line in enumerate(lines, 1)]
    unwritten = b""
    if last:
        try:
            entries.append(_decoder.decode(last))
            unwritten = last + b"\n"
        except _MALFORMED:
            # An unfinished line.
            pass
    if not entries:
        raise SessionError(f"{path}:1: is not a session: there is no whole line in it")
    _check_header(entries[0], path)
    return ReadEntries(entries, len(data) - len(last), unwritten, bool(last) and not unwritten)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector: while entries are made, it would visit all of them again and again, and free none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _entry(line: bytes, number: int, path: Path) -> Entry:
    try:
        entry: Entry = _decoder.decode(line)
    except _MALFORMED as exc:
        raise SessionError(f"{path}:{number}: is not an entry of a session: {exc}; the file is left as it is") from None
    if number > 1 and isinstance(entry, SessionHeader):
        raise SessionError(f"{path}:{number}: a second session begins here; the file is left as it is")
    return entry


def _check_header(header: Entry, path: Path) -> None:
    if not isinstance(header, SessionHeader):
        raise SessionError(f"{path}:1: is not a session: it begins with {header.type!r}, not with 'session'")
    if header.version > VERSION:
        raise SessionError(
            f"{path}:1: was written by a newer agent-hooks (version {header.version}, this one reads {VERSION}); update"
        )


def list_sessions(cwd: str) -> list[SessionSummary]:
    """Return the sessions of a directory that have a prompt, the last written first.

    A file that is not a session is left out.
    """
    # `glob` treats a directory that goes away as empty.  `Path.glob` raises.
    files = map(Path, glob(os.path.join(escape(cwd), PROJECT_DIRECTORY, SESSIONS_DIRECTORY, "*.jsonl")))
    # Opening a pipe would wait for its other end.
    found = [each for path in files if path.is_file() and (each := _summary(path)) is not None]
    return [summary for _, summary in sorted(found, key=lambda each: (each[0], each[1].path), reverse=True)]


def _summary(path: Path) -> tuple[int, SessionSummary] | None:
    """Return a session and the time of its last write in ns, or `None` for a file that is not to be listed."""
    try:
        with path.open("rb") as file:
            header = _decoder.decode(file.readline())
            if not isinstance(header, SessionHeader):
                return None
            messages = 0
            for line in file:
                entry = _decoder.decode(line)
                messages += isinstance(entry, MessageEntry)
                if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
                    text = entry.message.sent
                    rest = [line for line in file if line.startswith(b'{"type":"message"')]
                    written = os.fstat(file.fileno()).st_mtime_ns
                    return written, SessionSummary(
                        path=str(path),
                        written=datetime.fromtimestamp(written / 1e9, UTC).isoformat(),
                        first_text=text,
                        last_text=_last_prompt(rest) or text,
                        messages=messages + len(rest),
                        session_id=header.id,
                    )
    except (OSError, *_MALFORMED):
        # Not a session to list; opening it gives the reason.
        pass
    return None


def _last_prompt(lines: Sequence[bytes]) -> str:
    """Return the last prompt in the lines of messages, empty without one; a line that cannot be read is left out."""
    for line in reversed(lines):
        if b'"role":"user"' in line:
            with suppress(*_MALFORMED):
                entry = _decoder.decode(line)
                message = entry.message if isinstance(entry, MessageEntry) else None
                if isinstance(message, UserMessage) and not message.is_context:
                    return message.sent
    return ""
