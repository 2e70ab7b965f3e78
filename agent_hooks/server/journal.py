"""The file of one session of another agent, in which its judged calls are kept beyond the life of a server.

Each line is one JSON array, which is appended in one step: a word, and its facts.  A killed process loses no line, and a
reader ignores half a line.  A file that has become large is renamed, and replaces the one before it; so a session has
two files at most.  An alarm is a file of its own, which a person removes.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks.errors import os_reason
from agent_hooks.settings import agent_home
from agent_hooks.storage.digests import sha256

CALLS = "calls"
"""The directory of these files, below the agent home."""
LIMIT = 128 * 1024
"""The size from which a file is renamed, in bytes."""
_MOST_FILES = 1000
"""The number of files that stay, and of alarms beside them; the oldest go first."""
_LONGEST = 30 * 86400.0
"""Seconds until a file goes to which nothing was added."""


class Alarm(Struct, frozen=True):
    """A call that ran without having been judged, or another sign that a gate was passed by.

    `agent`: the other agent; `session`: its session; `project`: the directory of the session; `tool`: the tool, in the
    agent's words; `at`: seconds since 1970; `reason`: the other sign, as a sentence part.
    """

    agent: str
    session: str
    project: str
    tool: str
    at: float
    reason: str = ""

    @property
    def sign(self) -> str:
        """The event that raised the alarm, as a sentence part."""
        return self.reason or f"{self.tool} ran without having been judged"


class Journal:
    """The lines of one session: `journal.add("call", identity)`, `for word, *facts in journal.lines()`.

    `failed`: the reason why a line could not be written.  Then the files are removed, because a file with a gap would
    give a false alarm.
    `carried`: returns the lines that a new file begins with, because they must not go with an old one.
    """

    def __init__(self, agent: str, session: str, carried: Callable[[], Iterable[Sequence[str]]] = tuple) -> None:
        self._carried = carried
        name = sha256(session.encode("utf-8", "surrogatepass"))[:16]
        self._path = os.path.join(agent_home(), CALLS, f"{agent}-{name}")
        self.failed: str | None = None

    def add(self, *line: str) -> None:
        """Append a line: a word and its facts."""
        if self.failed is not None:
            return
        try:
            self._append(as_json(line) + b"\n")
        except OSError as exc:
            self.failed = os_reason(exc)
            for path in self._paths():
                with suppress(OSError):
                    os.unlink(path)

    def lines(self) -> Iterator[list[str]]:
        """Yield the lines, the oldest first; there are none if the files cannot be read."""
        for path in self._paths():
            for line in (_read(path) or b"").split(b"\n"):
                # Half a line is no JSON.
                with suppress(msgspec.DecodeError):
                    yield msgspec.json.decode(line, type=list[str])

    def holds(self, fact: str | list[str]) -> bool:
        """Return whether the journal holds a fact in some line, or a whole line."""
        text = as_json(fact)
        return any(text in (_read(path) or b"") for path in self._paths())

    def _append(self, data: bytes) -> None:
        path = f"{self._path}.jsonl"
        try:
            file = _open(path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            file = _open(path)
        try:
            _write(file, data)
            if os.lseek(file, 0, os.SEEK_CUR) > LIMIT:
                self._rename(path, file)
        finally:
            os.close(file)

    def _rename(self, path: str, file: int) -> None:
        """Begin a new file, which knows whether the session's start was seen, and the lines that are carried over."""
        kept = [["start"]] if self.holds(["start"]) else []
        try:
            # Another process may have renamed it just now.
            if os.path.samestat(os.fstat(file), os.stat(path)):
                os.rename(path, f"{self._path}.old")
        except FileNotFoundError:
            pass
        except OSError:
            # The file stays as it is, and becomes larger.
            return
        new = _open(path)
        try:
            _write(new, b"".join(as_json(line) + b"\n" for line in [*kept, *self._carried()]))
        finally:
            os.close(new)

    def _paths(self) -> tuple[str, str]:
        return f"{self._path}.old", f"{self._path}.jsonl"

    # ---- the alarm

    def has_alarm(self) -> bool:
        """Return whether the session's alarm stands."""
        return os.access(f"{self._path}.alarm", os.F_OK)

    def raise_alarm(self, alarm: Alarm) -> None:
        """Write the alarm.  Raises `OSError`."""
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        new = f"{self._path}.alarm.{os.getpid()}"
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, as_json(alarm))
        finally:
            os.close(file)
        os.rename(new, f"{self._path}.alarm")

    def alarm(self) -> Alarm | None:
        """Return the session's alarm, `None` without one; an alarm that cannot be read has empty fields."""
        return _read_alarm(f"{self._path}.alarm") if self.has_alarm() else None


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _write(file: int, data: bytes) -> None:
    if os.write(file, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ---- all sessions


def alarms() -> dict[str, Alarm]:
    """Return all alarms of this agent home, by the path of each."""
    return {path: _read_alarm(path) for path in _files() if path.endswith(".alarm")}


def forget_starts(agent: str) -> None:
    """Let every session of an agent count as one whose start was not seen, because its entries have just changed."""
    for path in _files():
        if os.path.basename(path).startswith(f"{agent}-") and path.endswith((".jsonl", ".old")):
            with suppress(OSError):
                os.unlink(path)


def forget_agent(agent: str) -> None:
    """Remove the files of all sessions of an agent, with their alarms, because none of its entries is left."""
    for path in _files():
        if os.path.basename(path).startswith(f"{agent}-"):
            with suppress(OSError):
                os.unlink(path)
    # The directory stays while it has files of other agents.
    with suppress(OSError):
        os.rmdir(os.path.join(agent_home(), CALLS))


def remove_old() -> None:
    """Remove the files of sessions that had no call for long, and the oldest of too many.

    An alarm stays, however old it is, because only a person lifts it; of too many alarms the oldest go.
    """
    ages: list[tuple[float, str]] = []
    for path in _files():
        with suppress(OSError):
            ages.append((os.stat(path).st_mtime, path))
    ages.sort(reverse=True)
    limit = time.time() - _LONGEST
    others = [(changed, path) for changed, path in ages if not path.endswith(".alarm")]
    gone = [path for number, (changed, path) in enumerate(others) if changed < limit or number >= _MOST_FILES]
    gone += [path for _, path in ages if path.endswith(".alarm")][_MOST_FILES:]
    for path in gone:
        with suppress(OSError):
            os.unlink(path)


def _files() -> list[str]:
    directory = os.path.join(agent_home(), CALLS)
    with suppress(OSError):
        return [os.path.join(directory, name) for name in sorted(os.listdir(directory))]
    return []


def _read(path: str) -> bytes | None:
    with suppress(OSError), open(path, "rb") as file:
        return file.read()
    return None


def _read_alarm(path: str) -> Alarm:
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(_read(path) or b"", type=Alarm)
    return Alarm("?", "?", "?", "?", 0.0)


def as_json(value: Any) -> bytes:
    """Return a value as one line of JSON with sorted keys; half of a surrogate pair is written as an escape."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, default=str).encode()
