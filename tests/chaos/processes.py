"""The processes below this one: how a program is started, watched, and ended with all that it left."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
# The most bytes of an output that are kept, at its beginning and at its end.
_KEPT = 1 << 18
# Seconds between two looks at a program that runs.
_TICK = 0.02


def adopt_orphans() -> None:
    """Let this process be the parent of every process below it whose parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Output:
    """The output of a program from a pipe, of which the beginning and the end are kept."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._head = self._tail = b""

    def drain(self) -> None:
        """Read all that is there."""
        with suppress(BlockingIOError):
            while data := os.read(self.reader, 1 << 20):
                room = _KEPT - len(self._head)
                self._head += data[:room]
                self._tail = (self._tail + data[room:])[-_KEPT:]

    @property
    def text(self) -> str:
        """The kept output."""
        return (self._head + self._tail).decode(errors="replace")

    def close(self) -> None:
        """Close the pipe."""
        os.close(self.reader)


class Program:
    """A forked child in a session of its own."""

    def __init__(self, pid: int, stdout: Output, stderr: Output) -> None:
        self.pid = pid
        self.stdout, self.stderr = stdout, stderr
        self.status: int | None = None
        os.close(stdout.writer)
        os.close(stderr.writer)

    def watch(self, limit: Callable[[], float], look: Callable[[], object]) -> bool:
        """Read its output until it ends.  Returns `False` at the time `limit()`; calls `look` now and then."""
        while self.status is None and time.monotonic() < limit():
            select.select([self.stdout.reader, self.stderr.reader], [], [], _TICK)
            self._drain()
            look()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        self._drain()
        return self.status is not None

    def _drain(self) -> None:
        self.stdout.drain()
        self.stderr.drain()

    def close(self) -> None:
        """Read the rest, and close the pipes."""
        self._drain()
        self.stdout.close()
        self.stderr.close()


def fork(directory: str, environment: dict[str, str]) -> Program | None:
    """Fork a child in a session of its own; returns `None` in the child."""
    stdout, stderr = Output(), Output()
    if pid := os.fork():
        return Program(pid, stdout, stderr)
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((null, stdout.writer, stderr.writer)):
        os.dup2(descriptor, number)
    os.closerange(3, 64)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # ends with the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # ends with the process
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  # ends with the process
    # The originals belong to the pipes of the worker.
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    return None


def descendants() -> dict[int, str]:
    """Return the command lines of all living processes below this one, by process id."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit():
            with suppress(OSError):
                with open(f"/proc/{entry}/stat") as file:
                    state, parent = file.read().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents[int(entry)] = int(parent)
    found: dict[int, str] = {}
    below = {os.getpid()}
    while below := {pid for pid, parent in parents.items() if parent in below}:
        found |= {pid: _command(pid) for pid in below}
    return found


def _command(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    return "?"


def reap() -> None:
    """Collect the exit codes of all children that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def leftovers(grace: float) -> dict[int, str]:
    """Return the processes that are still there after `grace` seconds."""
    end = time.monotonic() + grace
    while found := descendants():
        reap()
        if time.monotonic() > end:
            return found
        time.sleep(_TICK)
    reap()
    return {}


def kill_all() -> None:
    """Kill every process below this one, also stopped ones."""
    while found := descendants():
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
        reap()
    reap()
