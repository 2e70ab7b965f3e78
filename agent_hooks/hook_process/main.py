"""The start of a hook's process: the first message, the limits, and the event loop."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from importlib import import_module

from agent_hooks.hook_process.ending import end
from agent_hooks.isolation.protocol import VERSION, Frames, Hello, from_agent

_CHUNK = 1 << 16
# Seconds between the soft limit of computing and the hard one.
_CPU_GRACE = 2


def main(descriptor: int, lifeline: int, own: list[str]) -> None:
    """Serve the agent over a socket until it closes; the process ends here.

    `lifeline`: the reading end of a pipe whose writing end only the agent has; `own`: the `sys.path` of this Python.
    """
    connection = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)
    os.set_inheritable(lifeline, False)
    frames = Frames()
    waiting = _first_messages(connection, frames)
    hello = from_agent(waiting.pop(0))
    if not isinstance(hello, Hello) or hello.version != VERSION:
        sys.exit(f"the agent and the Python of its hook have different versions of agent_hooks; this one is {VERSION}")
    del os.environ["PYTHONHASHSEED"]
    os.environb.update(hello.variables)
    _end_with(lifeline)
    _limit(hello)
    if hello.search is not None:
        sys.path[:] = [os.fsdecode(each) for each in hello.search]
    # Imported here, because the modules that the agent finds count.
    import anyio

    from agent_hooks.hook_process.serving import serve

    if hello.own_first:
        # The packages that work for the agent are loaded by now, and the hook's do not replace them.
        _load_backend(hello.backend)
        sys.path[:] = [*own, *(each for each in sys.path if each not in own)]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]  # the real ones
    try:
        anyio.run(serve, connection, frames, waiting, backend=hello.backend)
    finally:
        end()


def _load_backend(name: str) -> None:
    """Load the modules of anyio and of the event loop, which `anyio.run` would look for."""
    import_module(f"anyio._backends._{name}")


def _first_messages(connection: socket.socket, frames: Frames) -> list[bytes]:
    """Wait for the first message; more may come with it."""
    while True:
        if not (data := connection.recv(_CHUNK)):
            os._exit(0)
        if messages := list(frames.feed(data)):
            return messages


def _end_with(lifeline: int) -> None:
    """End this process and its group with the agent, also while code of the hook hangs.

    Linux does so itself: it kills the group when the lifeline closes.  Elsewhere a thread waits for that end.
    PR_SET_PDEATHSIG would end this process before, and the signal to the group with it.
    """
    if sys.platform == "linux":
        # Imported here, because only Linux needs it.
        import fcntl

        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        # The agent may have ended before.
        if _has_closed(lifeline, 0):
            end()
    else:  # pragma: no cover  # not on the machines that measure coverage
        threading.Thread(target=_watch, args=(lifeline,), name="agent_hooks lifeline", daemon=True).start()


def _watch(lifeline: int) -> None:  # pragma: no cover  # as above
    _has_closed(lifeline, None)
    end()


def _has_closed(lifeline: int, timeout: float | None) -> bool:
    """Wait until the agent has closed the lifeline, for `timeout` milliseconds, and return whether it has."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    return bool(poll.poll(timeout))


def _limit(hello: Hello) -> None:
    """Set the limits of this process, before any code of the hook runs."""
    import resource

    for kind, value in (
        (resource.RLIMIT_AS, hello.memory),
        (resource.RLIMIT_CPU, hello.cpu),
        (resource.RLIMIT_NOFILE, hello.files),
    ):
        if value is not None:
            _, hard = resource.getrlimit(kind)
            # SIGXCPU, at the soft limit, names the reason; a hook that ignores it is killed at the hard one.
            above = _CPU_GRACE if kind == resource.RLIMIT_CPU else 0
            most = value + above if hard == resource.RLIM_INFINITY else min(value + above, hard)
            resource.setrlimit(kind, (max(min(value, most - above), 1), most))
