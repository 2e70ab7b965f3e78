"""The cost of another agent's hook: a process for each event, and the resident server behind it.

"Base" is the start of an interpreter that does nothing.  The first event starts the resident server, as it does for
another agent, in a home and a project of its own.  "Bare" is without hooks, guards and redaction: the bridge's own cost.
"""

from __future__ import annotations

import asyncio
import importlib.util
import select
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.guards import BUILTIN
from agent_hooks.server.stub import config_of
from benchmarks.bridge_commands import command_events
from benchmarks.bridge_echo import compiled, listening, on_one_core
from benchmarks.bridge_http import posted
from benchmarks.bridge_plugins import plugin_events
from benchmarks.bridge_projects import AGENT, BASE, EVENT, Project, Resident, served
from benchmarks.bridge_round_trip import NAME as ROUND_TRIP
from benchmarks.bridge_round_trip import round_trip
from benchmarks.harness import PEERS_COMMAND, Effort, NotHereError, Row, Side, attempt, attempt_async, interleave
from benchmarks.peer_runs import HOME, ROOT, Peers

CONNECTIONS = 64
IDLE = "import sys; print(flush=True); sys.stdin.read()"
# The imports of today's hook files: modules of the standard library, an event loop, and a library that checks data.  Of
# pydantic a class is imported, because the bare package loads itself only when it is used.  The event loop is imported on
# both sides, because a hook's handlers run in one.  The must leaves a quarter of these imports to ours, so the row of a
# hook that imports next to nothing has none.
IMPORTS = {
    "json": ("import json", None),
    "json and asyncio": ("import json, asyncio", 1.25),
    "anyio": ("import anyio, anyio._backends._asyncio", 1.25),
    "asyncio and pydantic": ("import asyncio; from pydantic import BaseModel", 1.25),
}
HOOK = "\n\ndef register(api):\n    @api.on('tool_call')\n    async def nothing(event, ctx): ...\n"
BARE = {"redaction": {"enabled": False}, "guards": {"disabled": list(BUILTIN)}, "records": {"enabled": False}}
EXAMPLES = {"hooks": [str(path) for path in sorted((ROOT / "examples" / "hooks").glob("*.py"))]}


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Start processes in turn, then ask servers in turn."""
    with tempfile.TemporaryDirectory(prefix="agent-hooks-bench-") as name:
        return asyncio.run(_rows(Path(name), effort))


async def _rows(folder: Path, effort: Effort) -> list[Row]:
    rows = []
    for name in IMPORTS:
        rows += await attempt_async(_without_server(name), _in_process(folder, name, effort))
    rows += await attempt_async("the server", _with_servers(folder, effort))
    rows += await attempt_async("an event by HTTP from Node, bare", posted(folder / "posted", BARE, effort))
    return rows + await attempt_async(ROUND_TRIP, round_trip(folder / "round-trip", effort))


async def _with_servers(folder: Path, effort: Effort) -> list[Row]:
    """Measure the rows that need a resident server; one that fails does not keep the others from being measured."""
    with ExitStack() as stack:
        bare = stack.enter_context(served(Project(folder / "bare", BARE)))
        guarded = stack.enter_context(served(Project(folder / "guarded", {})))
        examples = stack.enter_context(served(Project(folder / "examples", EXAMPLES)))
        servers = {"bare": bare, "with guards, redaction and records": guarded, "with the hooks of examples/": examples}
        return [
            *await attempt_async("a command that asks the server", _commands(bare, guarded, effort)),
            *await attempt_async("the server, p50, to a C echo", _echoes(folder, bare, guarded, effort)),
            *await attempt_async("an event of many at once, bare", _many(folder, bare, effort)),
            *attempt("memory of the server", lambda: _memory(servers)),
            *await attempt_async("a command event of each agent, bare", command_events(bare.project, effort)),
            *await attempt_async("a plugin event of each agent, bare", plugin_events(folder, bare, effort)),
        ]


# ---- a process for each event


def _without_server(name: str) -> str:
    return f"a command without a server, {name}"


async def _in_process(folder: Path, name: str, effort: Effort) -> list[Row]:
    """Compare the client's program without a server with an interpreter that only imports the same modules.

    The interpreter starts without `site` too, with the directories of packages in its program.
    """
    imports, must = IMPORTS[name]
    if "pydantic" in imports and importlib.util.find_spec("pydantic") is None:
        raise NotHereError("not installed: pydantic")
    command = [sys.executable, *config_of(open_bridge(AGENT))["run"], "bridge", AGENT, EVENT]
    packages = f"import sys; sys.path += {[path for path in sys.path if path.endswith('-packages')]}; "
    project = Project(folder / name, BARE, imports + HOOK)
    sides = {
        "ours": project.side(command, b"{}\n"),
        "base": project.side([sys.executable, "-I", "-S", "-c", packages + imports], b""),
    }
    rounds = await interleave(sides, effort)
    note = f"to an interpreter that does `{imports}`, as the hook; {rounds.seconds('base') * 1e3:.0f} ms"
    return [Row(_without_server(name), rounds.ratio("ours", "base"), must=must, note=note)]


async def _commands(bare: Resident, guarded: Resident, effort: Effort) -> list[Row]:
    sides = {
        "bare": bare.project.side(bare.project.ask, b"{}\n"),
        "guarded": guarded.project.side(guarded.project.ask, b"{}\n"),
        "base": bare.project.side(BASE, b""),
    }
    rounds = await interleave(sides, effort)
    return [
        Row("a command that asks the server, bare", rounds.ratio("bare", "base"), must=1.1, note="to base"),
        Row(
            "a command that asks the server, with guards, redaction and records",
            rounds.ratio("guarded", "base"),
            note="to base",
        ),
    ]


# ---- the server


def on_one(path: str, request: bytes, *, greets: bool) -> Side:
    """Return the side that asks again and again over one connection."""
    connection = _connect(path)
    connection.sendall(request)
    # The server's greeting, if it `greets`, comes before the first answer.
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


async def _echoes(folder: Path, bare: Resident, guarded: Resident, effort: Effort) -> list[Row]:
    echo = compiled(folder / "echo")
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
        Row("the server, p50, with guards, redaction and records", rounds.ratio("one guarded", "one echo"), note=note),
        Row("the server, p50, a new connection each time, bare", rounds.ratio("new", "new echo"), must=5, note=note),
    ]


async def _many(folder: Path, bare: Resident, effort: Effort) -> list[Row]:
    note = f"to uvicorn with h11; {CONNECTIONS} connections"
    python = HOME / "uvicorn" / "bin" / "python"
    if not (HOME / "uvicorn" / "ready").exists():
        raise NotHereError(f"uvicorn: not installed ({PEERS_COMMAND})")
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


def _memory(servers: dict[str, Resident]) -> list[Row]:
    if not Path("/proc/self/status").exists():
        raise NotHereError("not measured: this system has no /proc")
    with subprocess.Popen([*BASE[:-1], IDLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        base = _resident(process.pid)
        process.communicate()
    rows = []
    for name, server in servers.items():
        size = _resident(server.pid)
        must = 3 if name == "bare" else None
        rows.append(
            Row(f"memory of the server, {name}", size / base, must=must, note=f"to base; {size / 1024:.1f} MiB")
        )
    return rows


def _resident(pid: int) -> int:
    """Return the memory of a process, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])
