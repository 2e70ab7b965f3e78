"""What it costs to be another agent's hook: a process for each event, and the resident server behind it.

"Base" is the start of an interpreter that does nothing.  The resident server is started as another agent starts it, by
the first event, with a home and a project of its own.  "Bare" is without hooks, guards and redaction: the bridge's own
cost.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.guards import BUILTIN
from agent_hooks.server.stub import config_of
from benchmarks.bridge_http import posted
from benchmarks.bridge_projects import AGENT, BASE, EVENT, Project, Resident, served
from benchmarks.harness import Effort, Row, Side, interleave
from benchmarks.peer_runs import HOME, ROOT, Peers

CONNECTIONS = 64
IDLE = "import sys; print(flush=True); sys.stdin.read()"
# what hook files import today: the standard library's own, what async hooks wait with, and what reads and checks their
# data; of the last one a class, for the bare package loads itself only when it is used.  With an event loop, for a hook's
# handlers run in one.  To reach the must, all that we import and do has to fit into a quarter of that, so the hook that
# imports next to nothing has none.
IMPORTS = {
    "json": ("import json", None),
    "json and asyncio": ("import json, asyncio", 1.25),
    "anyio": ("import anyio, anyio._backends._asyncio", 1.25),
    "asyncio and pydantic": ("import asyncio; from pydantic import BaseModel", 1.25),
}
HOOK = "\n\ndef register(api):\n    @api.on('tool_call')\n    async def nothing(event, ctx): ...\n"
BARE = {"redaction": {"enabled": False}, "guards": {"disabled": list(BUILTIN)}}
EXAMPLES = {"hooks": [str(path) for path in sorted((ROOT / "examples" / "hooks").glob("*.py"))]}
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


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Start processes in turn, then ask servers in turn."""
    with tempfile.TemporaryDirectory(prefix="agent-hooks-bench-") as name:
        return asyncio.run(_rows(Path(name), effort, peers.lines))


async def _rows(folder: Path, effort: Effort, lines: list[str]) -> list[Row]:
    with ExitStack() as stack:
        rows = await _in_process(folder, effort)
        bare = stack.enter_context(served(Project(folder / "bare", BARE)))
        guarded = stack.enter_context(served(Project(folder / "guarded", {})))
        examples = stack.enter_context(served(Project(folder / "examples", EXAMPLES)))
        rows += await _commands(bare, guarded, effort)
        rows += await _echoes(folder, bare, guarded, effort, lines)
        rows += await _many(folder, bare, effort, lines)
        rows += await posted(folder / "posted", BARE, effort, lines)
        rows += _memory(
            {"bare": bare, "with guards and redaction": guarded, "with the hooks of examples/": examples}, lines
        )
    return rows


# ---- a process for each event


async def _in_process(folder: Path, effort: Effort) -> list[Row]:
    """Compare what the client runs where no server is to be had with an interpreter that only imports the same.

    The bare side does without `site`, too, and is told where the packages are.
    """
    command = [sys.executable, *config_of(open_bridge(AGENT))["run"], "bridge", AGENT, EVENT]
    packages = f"import sys; sys.path += {[path for path in sys.path if path.endswith('-packages')]}; "
    sides = {}
    for name, (imports, _) in IMPORTS.items():
        project = Project(folder / name, BARE, imports + HOOK)
        sides[f"ours {name}"] = project.side(command, b"{}\n")
        sides[name] = project.side([sys.executable, "-I", "-S", "-c", packages + imports], b"")
    rounds = await interleave(sides, effort)
    return [
        Row(
            f"a command without a server, {name}",
            rounds.ratio(f"ours {name}", name),
            must=must,
            note=f"to an interpreter that does `{imports}`, as the hook; {rounds.seconds(name) * 1e3:.0f} ms",
        )
        for name, (imports, must) in IMPORTS.items()
    ]


async def _commands(bare: Resident, guarded: Resident, effort: Effort) -> list[Row]:
    sides = {
        "bare": bare.project.side(bare.project.ask, b"{}\n"),
        "guarded": guarded.project.side(guarded.project.ask, b"{}\n"),
        "base": bare.project.side(BASE, b""),
    }
    rounds = await interleave(sides, effort)
    return [
        Row("a command that asks the server, bare", rounds.ratio("bare", "base"), must=1.1, note="to base"),
        Row("the same, with guards and redaction", rounds.ratio("guarded", "base"), note="to base"),
    ]


# ---- the server


def on_one(path: str, request: bytes, *, greets: bool) -> Side:
    """Return the side that asks again and again over one connection."""
    connection = _connect(path)
    connection.sendall(request)  # the first answer comes with the server's greeting, if it `greets`
    _read_lines(connection, 1 + greets)

    def ask() -> None:
        connection.sendall(request)
        _read_lines(connection, 1)

    return _p50(ask)


def on_new_ones(path: str, request: bytes, *, greets: bool) -> Side:
    """Return the side that asks over a new connection each time."""

    def ask() -> None:
        with _connect(path) as connection:
            connection.sendall(request)
            _read_lines(connection, 1 + greets)

    return _p50(ask)


def on_many(connections: list[socket.socket], request: bytes, end: bytes) -> Side:
    """Return the side that keeps one request under way on each connection; an answer ends with `end`."""
    by_number = {connection.fileno(): connection for connection in connections}
    poll = select.poll()
    for number in by_number:
        poll.register(number, select.POLLIN)

    async def side(loops: int) -> float:
        left = loops * len(connections)
        answered, asked = 0, len(connections)
        begin = perf_counter()
        for connection in connections:
            connection.sendall(request)
        while answered < left:
            for number, _ in poll.poll():
                connection = by_number[number]
                data = connection.recv(65536)
                assert data, "the server hung up"
                if data.endswith(end):
                    answered += 1
                    if asked < left:
                        connection.sendall(request)
                        asked += 1
        return (perf_counter() - begin) / left

    return side


@contextmanager
def on_one_core(*pids: int) -> Iterator[None]:
    """Keep this process, those it starts and `pids` on one core.

    Whether two processes sit on one core or wake each other across two is the scheduler's, and is many times what an
    answer takes.
    """
    if not hasattr(os, "sched_setaffinity"):  # macOS
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


async def _echoes(folder: Path, bare: Resident, guarded: Resident, effort: Effort, lines: list[str]) -> list[Row]:
    echo = _compiled(folder / "echo")
    if echo is None:
        lines.append("C echo: no compiler (cc)")
        return []
    request = bare.project.request
    with ExitStack() as stack:
        stack.enter_context(on_one_core(bare.pid, guarded.pid))
        one, new = (stack.enter_context(listening([echo], folder / name)) for name in ("one", "new"))
        sides = {
            "one": on_one(bare.path, request, greets=True),
            "one guarded": on_one(guarded.path, guarded.project.request, greets=True),
            "one echo": on_one(one, request, greets=False),
            "new": on_new_ones(bare.path, request, greets=True),
            "new echo": on_new_ones(new, request, greets=False),
        }
        rounds = await interleave(sides, effort)
    micros = rounds.seconds("one") * 1e6
    note = "to a C echo"
    return [
        Row("the server, p50, bare", rounds.ratio("one", "one echo"), must=3, note=f"{note}; {micros:.0f} µs"),
        Row("with guards and redaction", rounds.ratio("one guarded", "one echo"), note=note),
        Row("a new connection each time, bare", rounds.ratio("new", "new echo"), must=5, note=note),
    ]


async def _many(folder: Path, bare: Resident, effort: Effort, lines: list[str]) -> list[Row]:
    note = f"to uvicorn with h11; {CONNECTIONS} connections"
    python = HOME / "uvicorn" / "bin" / "python"
    if not (HOME / "uvicorn" / "ready").exists():
        lines.append("uvicorn: not installed (make bench-peers)")
        return []
    body = bare.project.payload.read_bytes()
    post = f"POST / HTTP/1.1\r\nHost: hooks\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    command = f"{python} -m uvicorn --http h11 --loop asyncio --log-level error benchmarks.peers.http_silence:app --uds"
    with ExitStack() as stack:
        http = stack.enter_context(listening(command.split(), folder / "http"))

        def connections(path: str) -> list[socket.socket]:
            return [stack.enter_context(_connect(path)) for _ in range(CONNECTIONS)]

        sides = {
            "ours": on_many(connections(bare.path), bare.project.request, b"]\n"),
            "uvicorn": on_many(connections(http), post + body, b"{}\n"),
        }
        rounds = await interleave(sides, effort)
    return [Row("an event of many at once, bare", rounds.ratio("ours", "uvicorn"), must=0.25, note=note)]


def _compiled(path: Path) -> str | None:
    """Return the echo server, `None` where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is not None:
        subprocess.run([compiler, "-O2", "-x", "c", "-o", path, "-"], input=ECHO.encode(), check=True)
    return compiler and str(path)


@contextmanager
def listening(command: list[str], path: Path) -> Iterator[str]:
    """Run a server that listens at a path, its last argument."""
    server = subprocess.Popen([*command, str(path)], cwd=ROOT)
    try:
        while not path.is_socket():
            assert server.poll() is None, f"{command[0]} ended with exit code {server.returncode}"
            time.sleep(0.01)
        yield str(path)
    finally:
        server.terminate()
        server.wait()


def _connect(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(path)
    return connection


def _read_lines(connection: socket.socket, count: int) -> None:
    while count > 0:
        data = connection.recv(65536)
        assert data, "the server hung up"
        count -= data.count(b"\n")


def _p50(ask: Any) -> Side:
    async def side(loops: int) -> float:
        took = []
        for _ in range(loops):
            begin = perf_counter()
            ask()
            took.append(perf_counter() - begin)
        return median(took)

    return side


# ---- memory


def _memory(servers: dict[str, Resident], lines: list[str]) -> list[Row]:
    if not Path("/proc/self/status").exists():
        lines.append("memory of the server: no /proc here that tells")
        return []
    with subprocess.Popen([*BASE[:-1], IDLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        base = _resident(process.pid)
        process.communicate()
    rows = []
    for name, server in servers.items():
        size = _resident(server.pid)
        must = 3 if name == "bare" else None
        rows.append(Row(f"its memory, {name}", size / base, must=must, note=f"to base; {size / 1024:.1f} MiB"))
    return rows


def _resident(pid: int) -> int:
    """Return the memory of a process, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])
