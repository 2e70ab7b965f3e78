"""Become the parent of programs whose own parent has ended, and collect them when they end.  Linux.

A command that a tool's program started in the background can then still find out that an agent started it.

An orphan stays a zombie until this process collects it. Programs with another waiter in this process are not collected.
These rules find the orphans:

1. Each tool's program begins a session. So an orphan of a tool is never in the session of this process.
2. A program that this process starts is in the session of this process, or leads one.
3. A child in another session, whose leader it is not, is an orphan. It is collected.
4. A child that leads its session may be either. It is collected at a second look, if no `Popen` object has its id.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from contextlib import suppress

INTERVAL = 5.0
"""Seconds between two looks."""
# PR_SET_CHILD_SUBREAPER of Linux.
_SUBREAPER = 36


class Orphans:
    """The orphans of this process: `adopt()` at its start, `collect()` now and then."""

    __slots__ = ("_adopts", "_leaders", "_next")

    def __init__(self) -> None:
        self._adopts = False
        # The ended leaders of sessions that the last look found.
        self._leaders: set[int] = set()
        self._next = 0.0

    def adopt(self) -> None:
        """Become the parent of programs whose parent ends. Their own children are not asked to do the same."""
        if sys.platform != "linux":
            return
        try:
            # Imported here, because most commands run no programs. Some builds of Python lack it.
            import ctypes
        except ImportError:  # pragma: no cover
            return
        prctl = getattr(ctypes.CDLL(None), "prctl", None)
        self._adopts = prctl is not None and not prctl(_SUBREAPER, ctypes.c_ulong(1), *[ctypes.c_ulong(0)] * 3)

    def collect(self) -> None:
        """Collect the orphans that have ended. It does nothing until `INTERVAL` has passed."""
        if not self._adopts or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + INTERVAL
        ended = _ended_children()
        leaders = {pid for pid, session in ended.items() if session == pid}
        twice = leaders & self._leaders
        lost = {pid for pid, session in ended.items() if session not in (pid, os.getsid(0))}
        for pid in lost | (twice - _awaited() if twice else twice):
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._leaders = leaders


def _ended_children() -> dict[int, int]:
    """Return the sessions of the ended children that nobody has waited for, by their ids."""
    with suppress(ChildProcessError):
        if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return dict(_read_ended())
    return {}


def _read_ended() -> list[tuple[int, int]]:
    found = []
    mine = str(os.getpid()).encode()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        # Processes end during the walk.
        with suppress(OSError):
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
            if parent == mine and state == b"Z":
                found.append((int(name), int(session)))
    return found


def _awaited() -> set[int | None]:
    """Return the ids of the processes that a part of this process may still ask about."""
    from subprocess import Popen

    # A class of a hook's object can lie about itself to `isinstance`.
    return {getattr(each, "pid", None) for each in gc.get_objects() if issubclass(type(each), Popen)}
