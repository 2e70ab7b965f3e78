"""Notes about the turns of agents that go on, below the agent home, which cost a process of one event little.

There are two kinds.  The note of a session holds the prompt of its turn and the working trees that were saved before its
first change, so that another process knows them.  The note of a turn lies in the store of a working tree, and tells the
other agents there that this turn goes on, and how many of its calls run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct

from agent_hooks.settings import agent_home
from agent_hooks.storage.digests import sha256

LIVE = 1800.0
"""Seconds after its last call for which a turn without an end counts as going on."""
_OPEN = "open"
_MOST = 1 << 20
_DAY = 86_400.0
# Seconds by which the clock of files may be late.
_TICK = 0.1


class Work(Struct, frozen=True, kw_only=True):
    """A turn of an agent: its work on one prompt.

    `turn`: its id; `session_id`, `agent_id`, `agent`: the session, the agent in it, and the client; `prompt`: the
    beginning of the prompt; `entry_index`: the number of session entries when the turn began.
    """

    turn: str
    session_id: str = ""
    agent_id: str = "main"
    agent: str = ""
    prompt: str = ""
    entry_index: int = 0


class SessionNote(Struct, kw_only=True):
    """The turn of a session that goes on.

    `trees`: the working trees that were saved before its first change; `running`: the ids of its calls that run;
    `warned`: the warnings that the person has had in this session; `over`: the turn has ended.
    """

    work: Work
    trees: set[str] = set()
    running: list[str] = []
    warned: list[str] = []
    over: bool = False


# ---- places


def stores_directory() -> str:
    """Return the directory that holds the stores of all working trees."""
    return os.path.join(agent_home(), "checkpoints")


def store_of(top: str) -> str:
    """Return the store of a working tree, whether or not it exists."""
    return os.path.join(stores_directory(), _name(os.fsencode(os.path.realpath(top))))


def working_tree(directory: str) -> str | None:
    """Return the innermost directory around this one that has an entry `.git`, `None` if there is none."""
    here = os.path.abspath(directory)
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above
    return here


def _name(data: bytes) -> str:
    return sha256(data)[:32]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _put(path: str, data: bytes) -> None:
    """Write a file in one step; raises `OSError`."""
    for directory in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
        with suppress(FileExistsError):
            os.makedirs(directory, mode=0o700)
    draft = f"{path}.{os.getpid()}.tmp"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(file, data)
        os.replace(draft, path)
    except OSError:
        # The disk is full, for example.
        with suppress(OSError):
            os.unlink(draft)
        raise
    finally:
        os.close(file)


# ---- the turn of a session


def session_note(session_id: str) -> SessionNote | None:
    """Return the note of a session, `None` if there is none that can be read."""
    try:
        with open(_session_path(session_id), "rb") as file:
            note = msgspec.json.decode(file.read(_MOST), type=SessionNote)
    except (OSError, ValueError, RecursionError):
        return None
    return note if note.work.session_id == session_id else None


def write_session_note(note: SessionNote) -> None:
    """Write the note of a session; without it, another process begins a turn of its own.  Raises `OSError`."""
    with suppress(UnicodeError):
        _put(_session_path(note.work.session_id), msgspec.json.encode(note))


def remove_session_note(session_id: str) -> None:
    """Remove the note of a session."""
    with suppress(OSError):
        os.unlink(_session_path(session_id))


def sweep_session_notes() -> None:
    """Remove the notes of sessions that were left more than a day ago."""
    directory = os.path.join(stores_directory(), "sessions")
    with suppress(OSError):
        for entry in os.scandir(directory):
            with suppress(OSError):
                if time.time() - entry.stat().st_mtime > _DAY:
                    os.unlink(entry.path)


def writing_turns(since: float) -> Iterator[Work]:
    """Yield the turns with a call that runs and may change files, and one without a session if a note changed `since`.

    Such a call has ended then, or begins.  `since`: seconds since 1970.
    """
    directory = os.path.join(stores_directory(), "sessions")
    with suppress(OSError):
        if os.stat(directory).st_mtime > since - _TICK:
            yield Work(turn="")
        for entry in os.scandir(directory):
            with suppress(OSError, ValueError):
                with open(entry.path, "rb") as file:
                    note = msgspec.json.decode(file.read(_MOST), type=SessionNote)
                if note.running and time.time() - entry.stat().st_mtime < LIVE:
                    yield note.work


def _session_path(session_id: str) -> str:
    return os.path.join(stores_directory(), "sessions", _name(_encoded(session_id)))


# ---- the turns in a working tree


def note_open(store: str, turn: str, *, calls: int) -> None:
    """Note that a turn goes on, and how many of its calls run; raises `OSError`."""
    _put(_open_path(store, turn), b"%d %s" % (calls, _encoded(turn)))


def note_closed(store: str, turn: str) -> None:
    """Note that a turn is over."""
    with suppress(OSError):
        os.unlink(_open_path(store, turn))


def open_turns(store: str) -> dict[str, int]:
    """Return the turns that go on, each with the number of its calls that run."""
    found: dict[str, int] = {}
    try:
        entries = list(os.scandir(os.path.join(store, _OPEN)))
    except OSError:
        return found
    for entry in entries:
        with suppress(OSError, ValueError):
            if time.time() - entry.stat().st_mtime > LIVE:
                os.unlink(entry.path)
            elif not entry.name.endswith(".tmp"):
                with open(entry.path, "rb") as file:
                    calls, _, turn = file.read(4096).decode("utf-8", "surrogatepass").partition(" ")
                found[turn] = int(calls)
    return found


def _open_path(store: str, turn: str) -> str:
    return os.path.join(store, _OPEN, _name(_encoded(turn)))
