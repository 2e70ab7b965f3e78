"""The judged sessions of this user: which are open, or were until a short while ago.

A command that loosens something asks for more then, because an agent may have started it: a process that has left the
agent's process tree looks like a user's.  Each session has a small file below the agent home, which is sealed.
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
from agent_hooks.values.events import TRIAL

RECENT = 10 * 60.0
"""Seconds after its last sign for which a session without a living process is recent."""
_WHERE = os.path.join("trust", "open")
# Seconds between two signs of an open session.
_INTERVAL = 30.0
# Files that are older than this are removed when a session begins.
_OLD = 30 * 86400.0


class _Sign(Struct):
    """The agent, the id of its process and the time of that process's start. 0 without a known process.

    `began`: the session's begin in clock ticks since the system's start, or 0 where the system does not tell.
    """

    client: str
    process: int = 0
    started: str = ""
    began: int = 0


class Judged(Struct, frozen=True):
    """The judged sessions that are open or recent: the words for one, and the earliest begin of all."""

    words: str
    began: int

    def __str__(self) -> str:
        return self.words


class OpenSession:
    """The sign of one session: `seen(process)` at its events, `end()` after the last one.

    `path`: its file, empty for the sample call of `agent-hooks doctor`.
    """

    __slots__ = ("_began", "_client", "_next", "_process", "path")

    def __init__(self, client: str, session: str) -> None:
        self._client = client
        name = sha256(session.encode("utf-8", "surrogatepass"))[:16]
        # The sample call of `agent-hooks doctor` belongs to no session of an agent.
        self.path = "" if session.startswith(TRIAL) else os.path.join(agent_home(), _WHERE, f"{client}-{name}")
        self._process: int | None = None
        self._next = 0.0
        self._began = 0

    def seen(self, process: int | None) -> None:
        """Note that the session is open. `process`: the id of the agent's process, if it is known."""
        now = time.monotonic()
        if now >= self._next or process != self._process:
            self._process, self._next = process, now + _INTERVAL
            started = (process_start(process) or "") if process else ""
            self._began = int(started or self._began or self._earlier())
            self._write(_Sign(self._client, process or 0, started, self._began))

    def end(self) -> None:
        """Note that the session has ended just now."""
        self._next = 0.0
        self._write(_Sign(self._client, began=self._began))

    def _earlier(self) -> int:
        """Return the begin of a session without a known process: its last sign has it, or it is this moment."""
        sign, age = _read(self.path)
        if age < RECENT and sign.began:
            return sign.began
        # Other systems lack this clock.
        clock = getattr(time, "CLOCK_BOOTTIME", None)
        return 0 if clock is None else int(time.clock_gettime(clock) * os.sysconf("SC_CLK_TCK"))

    def _write(self, sign: _Sign) -> None:
        if not self.path:
            return
        # A session whose sign cannot be written is judged all the same.
        with suppress(OSError):
            if not os.path.lexists(self.path):
                os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
                _remove_old(os.path.dirname(self.path))
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            file = os.open(self.path, flags, 0o600)
            try:
                os.write(file, msgspec.json.encode(sign))
            finally:
                os.close(file)


def open_processes(but: OpenSession | None = None) -> set[int]:
    """Return the processes of open judged sessions, without the session `but`."""
    with suppress(OSError):
        return {sign.process for sign, _ in _signs(but) if _is_open(sign)}
    return set()


def open_session(but: OpenSession | None = None) -> Judged | None:
    """Return the judged sessions other than `but` that are open or recent, `None` when there is none."""
    is_open = recent = None
    began = list[int]()
    try:
        for sign, age in _signs(but):
            if _is_open(sign):
                is_open = is_open or f"a session of {sign.client} is open (process {sign.process})"
            elif age < RECENT:
                recent = f"a session of {sign.client} was open less than {RECENT / 60:g} minutes ago"
            else:
                continue
            began.append(sign.began)
    except OSError as exc:
        return Judged(f"{exc.filename} cannot be read ({exc.strerror}), so a session may be open", 0)
    words = is_open or recent
    return None if words is None else Judged(words, min(filter(None, began), default=0))


def may_run(client: str, session: str) -> bool:
    """Return whether a session may be open; one without a known process may be for a while after its last sign.

    A session that a run has begun later has no sign, so nothing is known of it.
    """
    path = OpenSession(client, session).path
    if not os.path.lexists(path):
        return True
    sign, age = _read(path)
    return _is_open(sign) if sign.process else age < RECENT


def _signs(but: OpenSession | None) -> Iterator[tuple[_Sign, float]]:
    """Yield each sign but one, and its age in seconds.  Raises `OSError`."""
    directory = os.path.join(agent_home(), _WHERE)
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return
    for path in (os.path.join(directory, name) for name in names):
        if but is None or path != but.path:
            yield _read(path)


def _is_open(sign: _Sign) -> bool:
    return bool(sign.process) and process_start(sign.process) == sign.started


def _read(path: str) -> tuple[_Sign, float]:
    """Return the sign in a file, and its age in seconds. A file that cannot be read is recent."""
    try:
        age = time.time() - os.lstat(path).st_mtime
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return msgspec.json.decode(os.read(file, 4096), type=_Sign), age
        finally:
            os.close(file)
    except FileNotFoundError:
        return _Sign("?"), RECENT
    # Half a sign of a session that begins just now, for example.
    except (OSError, msgspec.MsgspecError):
        return _Sign("an agent"), 0.0


def process_start(process: int) -> str | None:
    """Return a process's start in clock ticks, empty where the system does not tell. `None` after its end."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        # A process that was not waited for runs no more.
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    except (OSError, IndexError):
        pass
    if os.path.isdir("/proc/self"):
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except (OSError, OverflowError):
        pass
    return ""


def _remove_old(directory: str) -> None:
    limit = time.time() - _OLD
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with suppress(OSError):
            if os.lstat(path).st_mtime < limit:
                os.unlink(path)
