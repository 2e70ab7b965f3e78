"""Start the process of a hook: which Python, in which environment, under which limits.

The process is a session and a process group of its own, so that all of it can be ended.  It gets one end of a pair of
sockets, and the reading end of a pipe that tells when the agent has ended.  Its output goes into another pipe.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import weakref
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

from msgspec import Struct

from agent_hooks.concurrency.deadlines import in_trio_task
from agent_hooks.isolation.protocol import VERSION, Hello, framed

# The directory in which the package lies.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The paths of the command line come first until the first message arrives.
_BOOT = (
    "import sys; own = [*sys.path]; given = sys.argv[1]; sys.path[:0] = sys.argv[2:]; del sys.argv[1:]; "
    "from agent_hooks.hook_process.main import main; main(*map(int, given.split(',')), own)"
)


# The writing ends of the lifelines of this agent.
_lifelines: set[int] = set()


def _close_lifeline(lifeline: int) -> None:
    _lifelines.discard(lifeline)
    os.close(lifeline)


def _close_lifelines() -> None:
    """Close the lifelines in a copy of the agent, which must not keep the hooks alive after the agent."""
    while _lifelines:
        os.close(_lifelines.pop())


os.register_at_fork(after_in_child=_close_lifelines)


class Limits(Struct, frozen=True):
    """The limits of a hook's process: `memory` in bytes of address space, `cpu` in seconds, `files` that are open."""

    memory: int | None = None
    cpu: int | None = None
    files: int | None = None


class Launch(Struct, frozen=True):
    """How the process of a hook is started.

    `interpreter`: the path of a Python; `environment`: its environment variables, `None` for a copy of the agent's;
    `search`: its `sys.path`, `None` for that interpreter's own; `own_first`: the hook finds the packages of
    `interpreter`, and those of `search` only where that interpreter has none.
    """

    interpreter: str
    environment: Mapping[str, str] | None = None
    limits: Limits = Limits()
    search: tuple[str, ...] | None = None
    cwd: str | None = None
    own_first: bool = False


def own_launch(limits: Limits = Limits()) -> Launch:  # noqa: B008  # it is frozen
    """Return the launch with this Python and the modules that it finds."""
    return Launch(sys.executable, limits=limits, search=tuple(sys.path))


class Started:
    """A process that runs: `socket` leads to it, and `output` is the descriptor of its output.

    `lifeline`: the descriptor whose end, also by the death of the agent, ends the process and its group.
    """

    def __init__(self, popen: Any, connection: socket.socket, output: int, lifeline: int) -> None:
        self.pid: int = popen.pid
        self.socket = connection
        self.output = output
        self._popen = popen
        # A hook that nothing refers to any more, and the end of the interpreter, end the process.
        self.end = weakref.finalize(self, _end, os.getpid(), popen, connection, output, lifeline)

    def hang_up(self) -> None:
        """Close the connection; the process ends itself."""
        with suppress(OSError):
            # It may have ended before.
            self.socket.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        """Kill the process and all of its group, also when the process itself has ended."""
        _kill(self._popen)

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; `None` while the process runs.  Call `kill` before."""
        return self._popen.poll()  # type: ignore[no-any-return]  # `Popen` is imported late


def launch(how: Launch, seed: int) -> Started:
    """Start a process; raises `OSError` when that fails.

    `seed`: the seed of its hashes, so that each run of a hook goes through a set in the same order.
    """
    # Imported here, because most programs have no hook in a process of its own.
    from subprocess import DEVNULL, Popen

    others, variables = _environment(how)
    with ExitStack() as on_failure, ExitStack() as at_once:
        ours, theirs = socket.socketpair()
        on_failure.callback(ours.close)
        at_once.callback(theirs.close)
        reading, writing = os.pipe()
        on_failure.callback(os.close, reading)
        at_once.callback(os.close, writing)
        watched, lifeline = os.pipe()
        _lifelines.add(lifeline)
        on_failure.callback(_close_lifeline, lifeline)
        at_once.callback(os.close, watched)
        given = theirs.fileno(), watched
        # Another environment has none of the packages that this one needs.
        paths = how.search if how.own_first and how.search is not None else (_PACKAGE,)
        # This is `-I`, but for the seed.
        command = [how.interpreter, "-P", "-s", *_flags(), "-c", _BOOT, ",".join(map(str, given)), *paths]
        popen = Popen(
            command,
            stdin=DEVNULL,
            stdout=writing,
            stderr=writing,
            pass_fds=given,
            env={**others, "PYTHONHASHSEED": str(seed)},
            cwd=how.cwd,
            start_new_session=True,
        )
        on_failure.pop_all()
    hello = Hello(
        VERSION,
        "trio" if in_trio_task() else "asyncio",
        None if how.search is None else [os.fsencode(each) for each in how.search],
        how.limits.memory,
        how.limits.cpu,
        how.limits.files,
        how.own_first,
        {os.fsencode(name): os.fsencode(value) for name, value in variables.items()},
    )
    started = Started(popen, ours, reading, lifeline)
    with suppress(OSError):
        # The process may have ended already, which its socket says to the reader.
        ours.sendall(framed(hello))
    ours.setblocking(False)
    os.set_blocking(reading, False)
    return started


def _environment(how: Launch) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables of a process without those of Python's own, and these, which must not change its start."""
    given = dict(os.environ if how.environment is None else how.environment)
    own = {name: given.pop(name) for name in tuple(given) if name.startswith("PYTHON")}
    return given, own


def _flags() -> list[str]:
    """Return the flags of this interpreter that change how a hook's code works."""
    return ["-X", "utf8"] if sys.flags.utf8_mode else []


def _kill(popen: Any) -> None:
    # The id of a process that was not collected yet belongs to it and its group.
    if popen.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL)


def _end(owner: int, popen: Any, connection: socket.socket, output: int, lifeline: int) -> None:
    connection.close()
    os.close(output)
    if os.getpid() == owner:
        # A copy of the agent has closed it already.
        _close_lifeline(lifeline)
        _kill(popen)
        popen.wait()
