"""Which directories a person has unlocked for the agent at present, as `agent-hooks unlock` wrote it.

Each guarded call asks, so this module is small and quick.  Every doubt counts as locked: a file that is no JSON, of
another version, of another user or open to others, a limit that is too far away, a clock that has gone back, another
boot.
"""

from __future__ import annotations

import os
import stat
import time

import msgspec
from msgspec import Struct

from agent_hooks.settings import agent_home

STATE = "unlock.json"
"""The file of the state, below the agent home."""
VERSION = 1
LONGEST = 8 * 3600.0
"""The longest time for which hooks can be unlocked, in seconds."""
# A state holds the contents of hooks; a larger file is none of ours.
_MOST_BYTES = 64 * 1024 * 1024
_BOOT = "/proc/sys/kernel/random/boot_id"


class Unlocked(Struct, frozen=True):
    """The directories that a person has unlocked, and the time for which they are.

    `project`: the directory for which it was said; `directories`: the `.agent` directories whose hooks and settings the
    agent may change; `started`, `until`: seconds since 1970; `clock`: the end in seconds of `time.monotonic`; `boot`: the
    system's id of its last start, empty if it has none; `before`: the contents of the files at the start, by path.
    """

    project: str
    directories: tuple[str, ...]
    started: float
    until: float
    clock: float
    boot: str
    before: dict[str, str]
    version: int = VERSION

    def is_in_force(self) -> bool:
        """Return whether the time has not run out, by the system's clock and by the clock that cannot be set."""
        now = time.time()
        if not (self.started <= now < self.until <= self.started + LONGEST):
            return False
        return self.boot == boot_id() and (not self.boot or time.monotonic() < self.clock <= time.monotonic() + LONGEST)


def unlocked_directories() -> tuple[str, ...]:
    """Return the `.agent` directories that the agent may change at present."""
    path = state_path()
    if not os.access(path, os.F_OK):
        return ()
    state = read_state(path)
    return state.directories if state is not None and state.is_in_force() else ()


def state_path() -> str:
    """Return the path of the state."""
    return os.path.join(agent_home(), STATE)


def read_state(path: str) -> Unlocked | None:
    """Return the state in a file, in force or not; `None` when it cannot be believed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        private = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        if not private or not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            return None
        text = b""
        while piece := os.read(file, 1 << 20):
            text += piece
    except OSError:
        return None
    finally:
        os.close(file)
    try:
        state = msgspec.json.decode(text, type=Unlocked)
    except (msgspec.DecodeError, RecursionError):
        return None
    return state if state.version == VERSION else None


def boot_id() -> str:
    """Return the id of the system's last start, empty where the system has none."""
    try:
        file = os.open(_BOOT, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(file, 64).decode("ascii", "replace").strip()
    finally:
        os.close(file)
