"""Read session files: every line, or an error that names the one that is wrong.  Above: session.  Below: content."""

from __future__ import annotations

import gc
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_hooks.errors import SessionError, os_reason
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.storage.locks import try_lock
from agent_hooks.values.content import Entry, MessageEntry, SessionHeader, UserMessage, text_of_content

VERSION = 1
SESSIONS_DIRECTORY = "sessions"
_decoder = msgspec.json.Decoder(Entry)
_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError)  # what decoding raises


class Found(NamedTuple):
    """What a session file holds.

    `size`: bytes of whole lines; `unwritten`: a last entry that only lacks its end of line, to be written once more;
    `dropped`: whether there was an unfinished line.
    """

    entries: list[Entry]
    size: int
    unwritten: bytes
    dropped: bool


class SessionSummary(NamedTuple):
    """A session, as a person chooses one: when it was last `written` (ISO 8601), its first prompt, how
    many messages it has.
    """

    path: str
    written: str
    first_text: str
    messages: int


def open_file(path: Path) -> int:
    """Open and lock a session file; raises `SessionError`."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise SessionError(f"{path}: is not a regular file, so no session")
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as exc:
        raise SessionError(f"{path}: the session cannot be opened: {os_reason(exc)}") from None
    except ValueError as exc:  # a null character, which no path has
        raise SessionError(f"{path}: the session cannot be opened: {exc}") from None
    try:
        lock(file, path)
    except BaseException:  # whatever it is goes on its way, and the file is closed
        os.close(file)
        raise
    return file


def lock(file: int, path: Path) -> None:
    """Keep other processes out until the file is closed; raises `SessionError` when one is in already."""
    try:
        free = try_lock(file)
    except OSError:
        return  # a file system without locks: better a session without one than none
    if not free:
        raise SessionError(f"{path}: another process works on this session; end that one first")


def read_entries(file: int, path: Path) -> Found:
    """Read all entries of an open file; raises `SessionError` that names the line."""
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        data = reader.read()
    *lines, last = data.split(b"\n")
    with all_is_kept():
        entries = [_entry(line, number, path) for number, line in enumerate(lines, 1)]
    unwritten = b""
    if last:
        try:
            entries.append(_decoder.decode(last))
            unwritten = last + b"\n"
        except _MALFORMED:
            pass  # a line that was not finished
    if not entries:
        raise SessionError(f"{path}:1: is not a session: there is no whole line in it")
    _check_header(entries[0], path)
    return Found(entries, len(data) - len(last), unwritten, bool(last) and not unwritten)


@contextmanager
def all_is_kept() -> Iterator[None]:
    """Do without the garbage collector: it would look at all entries again and again, and find none to throw away."""
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
    """Return the sessions of a directory in which something was said, the one last written first.

    A file that is no session is left out.
    """
    files = Path(cwd, PROJECT_DIRECTORY, SESSIONS_DIRECTORY).glob("*.jsonl")
    found = [each for path in files if path.is_file() and (each := _summary(path)) is not None]  # a pipe would wait
    return [summary for _, summary in sorted(found, key=lambda each: (each[0], each[1].path), reverse=True)]


def _summary(path: Path) -> tuple[int, SessionSummary] | None:
    """Return a session and when it was last written."""
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
                    text = text_of_content(entry.message.content)
                    messages += (b"\n" + file.read()).count(b'\n{"type":"message"')
                    written = os.fstat(file.fileno()).st_mtime_ns
                    return written, SessionSummary(
                        str(path), datetime.fromtimestamp(written / 1e9, UTC).isoformat(), text, messages
                    )
    except (OSError, *_MALFORMED):
        pass  # not ours to list; opening it says what is wrong
    return None
