"""The judged sessions of this user: which are open, or were until a short while ago.

A command that loosens something asks for more then, because an agent may have started it: a process that has left the
agent's process tree looks like a user's.  Each session has a small file below the agent home, which is sealed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache

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
# A session whose process is hidden from this one is open for so long after its last sign.
_HIDDEN = 86400.0
# The numbers of the namespaces that Linux starts with.
_INITIAL = (0xEFFFFFFC, 0xEFFFFFFD)


class _Sign(Struct):
    """The agent, the id of its process and the time of that process's start. 0 without a known process.

    `began`: the session's begin in clock ticks since the system's start, or 0 where the system does not tell.
    `ended`: the agent has said that the session ended.  A plain command can say that too, so the session is
    open while its process lives.
    `spaces`: the PID namespace and the user namespace of the process that wrote this.  0 where the system does not tell.
    """

    client: str
    process: int = 0
    started: str = ""
    began: int = 0
    ended: bool = False
    spaces: tuple[int, int] = (0, 0)


class Judged(Struct, frozen=True):
    """The judged sessions that are open or recent: the words for one, and the earliest begin of all.

    `apart`: this process is in a namespace that was made below the system's own and that is not the session's.  An agent
    can make one, and hide its processes and the signs of sessions there.
    """

    words: str
    began: int
    apart: bool = False

    def __str__(self) -> str:
        return self.words


class OpenSession:
    """The sign of one session: `seen(process)` at its events, `end()` after the last one.

    `path`: its file, empty for the sample call of `agent-hooks doctor`.
    """

    __slots__ = ("_client", "_last", "_next", "_process", "_session")

    def __init__(self, client: str, session: str) -> None:
        self._client = client
        self._session = session
        self._process: int | None = None
        self._next = 0.0
        self._last = _Sign(client, spaces=_spaces())

    @property
    def path(self) -> str:
        # The sample call of `agent-hooks doctor` belongs to no session of an agent.
        if self._session.startswith(TRIAL):
            return ""
        name = sha256(self._session.encode("utf-8", "surrogatepass"))[:16]
        # The path is not kept, because thousands of sessions may be known.
        return os.path.join(agent_home(), _WHERE, f"{self._client}-{name}")

    def seen(self, process: int | None) -> None:
        """Note that the session is open. `process`: the id of the agent's process, if it is known."""
        now = time.monotonic()
        if now >= self._next or process != self._process:
            self._process, self._next = process, now + _INTERVAL
            started = (process_start(process) or "") if process else ""
            if not process:
                self._last = self._earlier()
            else:
                began = int(started or self._last.began)
                self._last = _Sign(self._client, process, started, began, spaces=self._last.spaces)
            self._write(self._last)

    def end(self) -> None:
        """Note that the session has ended just now.  It stays open until its process has ended."""
        self._next = 0.0
        self._write(msgspec.structs.replace(self._last, ended=True))

    def _earlier(self) -> _Sign:
        """Return the sign for an event without a known process.

        An event does not make a living process forgotten.  The begin is in the last sign, or it is this moment.
        """
        sign, age = _read(self.path)
        if _is_open(sign, age):
            return msgspec.structs.replace(sign, ended=False)
        began = self._last.began or (sign.began if age < RECENT else 0)
        # Other systems lack this clock.
        if not began and (clock := getattr(time, "CLOCK_BOOTTIME", None)) is not None:
            began = int(time.clock_gettime(clock) * os.sysconf("SC_CLK_TCK"))
        return _Sign(self._client, began=began, spaces=self._last.spaces)

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
        return {sign.process for sign, age in _signs(but) if _is_open(sign, age)}
    return set()


def open_session(but: OpenSession | None = None, homes: Collection[str] = ()) -> Judged | None:
    """Return the judged sessions other than `but` that are open or recent, `None` when there is none.

    `homes`: further agent homes in which to look for sessions.
    """
    is_open = recent = None
    began = list[int]()
    own, apart = _spaces(), False
    if (cover := _cover()) is not None:
        return Judged(f"{cover} is a mount that may hide sessions, so a session may be open", 0, apart=True)
    try:
        for sign, age in _signs(but, homes):
            if _is_open(sign, age):
                is_open = is_open or f"a session of {sign.client} is open (process {sign.process})"
            elif age < RECENT:
                recent = f"a session of {sign.client} was open less than {RECENT / 60:g} minutes ago"
            else:
                continue
            began.append(sign.began)
            apart = apart or any(
                0 not in (mine, its) and mine not in (its, initial)
                for mine, its, initial in zip(own, sign.spaces, _INITIAL, strict=True)
            )
    except OSError as exc:
        return Judged(f"{exc.filename} cannot be read ({exc.strerror}), so a session may be open", 0)
    words = is_open or recent
    return None if words is None else Judged(words, min(filter(None, began), default=0), apart)


def may_run(client: str, session: str) -> bool:
    """Return whether a session may be open; one without a known process may be for a while after its last sign.

    A session that a run has begun later has no sign, so nothing is known of it.
    """
    path = OpenSession(client, session).path
    if not os.path.lexists(path):
        return True
    sign, age = _read(path)
    return not sign.ended and _is_open(sign, age) if sign.process else age < RECENT


def _signs(but: OpenSession | None, homes: Collection[str] = ()) -> Iterator[tuple[_Sign, float]]:
    """Yield each sign but one, and its age in seconds.  Raises `OSError`."""
    for home in dict.fromkeys((agent_home(), *homes)):
        directory = os.path.join(home, _WHERE)
        try:
            names = sorted(os.listdir(directory))
        except FileNotFoundError:
            continue
        for path in (os.path.join(directory, name) for name in names):
            if but is None or path != but.path:
                yield _read(path)


def _is_open(sign: _Sign, age: float) -> bool:
    if not sign.process:
        return False
    mine, its = _spaces()[0], sign.spaces[0]
    # The number of the process means nothing in another namespace.
    return age < _HIDDEN if 0 not in (mine, its) and mine != its else process_start(sign.process) == sign.started


@cache
def _spaces() -> tuple[int, int]:
    """Return the numbers of this process's PID namespace and user namespace, 0 where the system does not tell."""
    found = []
    for name in ("pid", "user"):
        try:
            found.append(os.stat(f"/proc/self/ns/{name}").st_ino)
        except OSError:
            found.append(0)
    return found[0], found[1]


def _cover() -> str | None:
    """Return the mount over the signs of sessions, if there is one: in a mount namespace, it may hide them."""
    trust = os.path.join(os.path.realpath(agent_home()), os.path.dirname(_WHERE))
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            # A line has the mount point as its fifth word, in which octal numbers stand for blanks.
            points = [re.sub(rb"\\([0-7]{3})", _unescaped, line.split()[4]) for line in file]
    except (OSError, IndexError):
        return None
    covering = (os.fsdecode(point) for point in points)
    return next((point for point in covering if point == trust or point.startswith(trust + os.sep)), None)


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8) & 0xFF])


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
