"""The directory of the records and the names of its files.

Below the agent home, `records/` holds one file per session and process, `SESSION.PID.START.jsonl`, where START is the
time in milliseconds at which the file was begun; the index of all heads, `index.jsonl`, with its lock; and the key.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, refusing

DIRECTORY = "records"
INDEX = "index.jsonl"
SUFFIX = ".jsonl"
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"([A-Za-z0-9_-]+)\.(\d+)\.(\d+)\.jsonl")


def records_directory(home: str) -> str:
    """Return the directory of the records below an agent home."""
    return os.path.join(home, DIRECTORY)


def make_directory(directory: str) -> None:
    """Make the directory of the records, which only this user may enter; raises `StorageError`."""
    with refusing("write", directory):
        try:
            status = os.stat(directory)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(directory), exist_ok=True)
            with suppress(FileExistsError):
                os.makedirs(directory, 0o700)
            status = os.stat(directory)
        if not stat.S_ISDIR(status.st_mode):
            raise StorageError(f"{directory} is not a directory, so no records are kept there; move that file away")
        if status.st_uid != os.geteuid():
            raise StorageError(f"{directory} belongs to another user, so no records are kept there")
        if stat.S_IMODE(status.st_mode) & 0o077:
            os.chmod(directory, 0o700)


def session_stem(session: str) -> str:
    """Return the part of a file's name that stands for a session: its id, or a digest where that is no plain name."""
    if _PLAIN.fullmatch(session):
        return session
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", session)[:24].strip("-")
    return f"{plain or 'session'}-{sha256(session.encode('utf-8', 'surrogatepass'))[:16]}"


def file_name(session: str, pid: int, start: int) -> str:
    """Return the name of a session's file of one process; `start`: milliseconds since 1970."""
    return f"{session_stem(session)}.{pid}.{start}{SUFFIX}"


def parse_name(name: str) -> tuple[str, int, int] | None:
    """Return the stem, the process id and the start of a record file's name; `None` for any other name."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match[1], int(match[2]), int(match[3]))


def record_files(directory: str, stem: str = "") -> list[str]:
    """Return the paths of all record files whose names begin with `stem`, the oldest start first.

    An absent directory has none.
    """
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
    # A resident server asks this for each session, among the files of thousands.
    own = (name for name in names if name.startswith(stem))
    found = [(parsed[2], name) for name in own if (parsed := parse_name(name)) is not None]
    return [os.path.join(directory, name) for _, name in sorted(found)]


def files_of(directory: str, session: str) -> list[str]:
    """Return the paths of a session's files, the oldest start first."""
    return record_files(directory, session_stem(session) + ".")
