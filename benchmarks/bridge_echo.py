"""An echo server in C, the floor of an answer; and servers that listen at a path, on one core."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from benchmarks.harness import NotHereError
from benchmarks.peer_runs import ROOT

# Seconds for a server to listen.
PATIENCE = 60.0
ECHO = r"""
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **args) {
    static char data[1 << 16];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM, 0), one;
    strncpy(at.sun_path, args[1], sizeof at.sun_path - 1);
    if (bind(listening, (struct sockaddr *)&at, sizeof at) || listen(listening, 16)) return 1;
    while ((one = accept(listening, 0, 0)) >= 0) {
        for (ssize_t size; (size = read(one, data, sizeof data)) > 0;)
            if (write(one, data, size) != size) break;
        close(one);
    }
}
"""


@contextmanager
def on_one_core(*pids: int) -> Iterator[None]:
    """Keep this process, the processes that it starts, and `pids` on one core.

    To wake a process on another core takes many times as long as an answer, and the scheduler chooses the cores.
    """
    # macOS cannot bind a process to a core.
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = {pid: os.sched_getaffinity(pid) for pid in (0, *pids)}
    for pid in before:
        os.sched_setaffinity(pid, {min(before[0])})
    try:
        yield
    finally:
        for pid, cores in before.items():
            os.sched_setaffinity(pid, cores)


def compiled(path: Path) -> str:
    """Compile the echo server, and return its path."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NotHereError("not installed: a C compiler (cc)")
    subprocess.run([compiler, "-O2", "-x", "c", "-o", path, "-"], input=ECHO.encode(), check=True)
    return str(path)


@contextmanager
def listening(command: list[str], path: Path) -> Iterator[str]:
    """Run a server that listens at a path, its last argument, and wait until it accepts connections."""
    server = subprocess.Popen([*command, str(path)], cwd=ROOT)
    try:
        end = monotonic() + PATIENCE
        while not _accepts(path):
            assert server.poll() is None, f"{command[0]} ended with exit code {server.returncode}"
            assert monotonic() < end, f"{command[0]} does not listen after {PATIENCE:.0f} s"
            time.sleep(0.01)
        yield str(path)
    finally:
        server.terminate()
        server.wait()


def _accepts(path: Path) -> bool:
    """Tell whether a server accepts connections; the path alone is there before that, as soon as the socket is bound."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True
