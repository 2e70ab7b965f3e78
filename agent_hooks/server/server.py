r"""The resident process: listens on a Unix socket in a private directory, one JSON object a line.

    → {"do": "answer", "agent": "claude-code", "event": "PreToolUse", "environment": {…}, "payload": "…"}
    ← [0, "{…}\n"]                                        exit code and what to print
    → {"do": "status"}   {"do": "stop"}
    ← {"pid": …, "project": "…", …}

The first line is the server's and tells its version.  Above: cli.  Below: sessions, stub.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from msgspec import Struct

from agent_hooks import __version__
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import BridgeError, Reply, read_payload
from agent_hooks.errors import AgentHooksError, describe, log
from agent_hooks.server.sessions import Open, Sessions
from agent_hooks.server.stub import HELLO, LIMIT

IDLE = 1800.0  # seconds without an event and without a living session, after which the server ends
_LOOK_ROUND = 15.0  # seconds between looks whether agents have died
_GRACE = 3.0  # seconds that hooks get to end with the server
_LONGEST = 6 * LIMIT + 65536  # bytes of a line: JSON may write a byte as six


class Request(Struct):
    """One line of a client."""

    do: str
    agent: str = ""
    event: str = ""
    environment: dict[str, str] = {}
    payload: str = ""


_decode = msgspec.json.Decoder(Request).decode


class Server:
    """Answers events of one project until it is told to stop, or is idle for `idle` seconds."""

    def __init__(self, path: str, project: str, open: Open, *, idle: float = IDLE) -> None:
        self.path = path
        self.project = project
        self.stopped = asyncio.Event()
        self.answered = 0
        self._open = open
        self._idle = idle
        self._began = time.time()
        self._socket: tuple[int, int] | None = None
        self._sessions: Sessions

    async def run(self) -> bool:
        """Serve; returns at once, with `False`, if another process serves already."""
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        with suppress(OSError):  # whom to end should it be stuck; a full disk is no reason not to serve
            os.ftruncate(lock, 0)
            os.write(lock, f"{os.getpid()}\n".encode())
        try:
            async with anyio.create_task_group() as tasks:
                self._sessions = Sessions(self._open, tasks)
                listener = await self._listen()
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    asyncio.get_running_loop().add_signal_handler(number, self.stopped.set)
                tasks.start_soon(self._watch)
                await self.stopped.wait()
                if self._is_reached():  # so that the next event starts another one
                    os.unlink(f"{self.path}.socket")
                listener.close()
                with anyio.move_on_after(_GRACE):
                    await self._sessions.end()
                tasks.cancel_scope.cancel()
        finally:
            os.close(lock)
        return True

    async def _listen(self) -> asyncio.Server:
        """Listen, under a name that appears only once that works."""
        new = f"{self.path}.new"
        with suppress(FileNotFoundError):
            os.unlink(new)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(new)
        listener = await asyncio.get_running_loop().create_unix_server(lambda: _Connection(self), sock=listening)
        os.rename(new, f"{self.path}.socket")
        self._socket = self._found()
        return listener

    def _is_reached(self) -> bool:
        """Tell whether the socket is ours still: /tmp is tidied up, and then another one may serve already."""
        return self._found() == self._socket

    def _found(self) -> tuple[int, int] | None:
        with suppress(OSError):
            state = os.stat(f"{self.path}.socket")
            return state.st_ino, state.st_ctime_ns  # a number alone is given out again
        return None

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(min(_LOOK_ROUND, self._idle))
            self._sessions.end_the_dead()
            idle = time.monotonic() - self._sessions.idle_since() >= self._idle
            if idle or not self._is_reached() or not os.path.isdir(self.project):
                self.stopped.set()

    async def handle(self, line: bytes) -> bytes:
        """Return the answer to a request, as a line."""
        try:
            request = _decode(line)
        except msgspec.DecodeError as exc:
            return _line({"error": f"no request: {exc}"})
        match request.do:
            case "answer":
                reply = await self._answer(request)
                return msgspec.json.encode((reply.exit_code, reply.stdout)) + b"\n"  # it is ASCII: `Reply.of`
            case "status":
                return _line(self.status())
            case "stop":
                self.stopped.set()
                return _line(self.status())
        return _line({"error": f"no such request: {request.do}"})

    def status(self) -> Mapping[str, Any]:
        """Return what `agent-hooks serve --status` shows."""
        return {
            "version": __version__,
            "pid": os.getpid(),
            "project": self.project,
            "path": self.path,
            "sessions": len(self._sessions),
            "events": self.answered,
            "seconds": round(time.time() - self._began),
        }

    async def _answer(self, request: Request) -> Reply:
        self.answered += 1
        try:
            bridge = open_bridge(request.agent)
        except KeyError:
            return Reply.of({"error": f"no such agent: {request.agent}"})
        event: str | None = request.event or None
        try:
            if not bridge.runs_here(request.environment):  # another agent that reads the same settings
                return Reply.of({})
            happening = read_payload(bridge, request.payload)
            event = happening.name
            verdict = await self._sessions.answer(bridge, happening, request.environment)
            return bridge.encode(happening, verdict)
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # SystemExit of a hook, a bug: nothing may pass for a yes
            if isinstance(exc, BridgeError):
                text = f"agent-hooks could not read the event: {exc}"
            else:
                text = f"agent-hooks could not judge this: {exc if isinstance(exc, AgentHooksError) else describe(exc)}"
                log().exception("failed at %s", event or "an event")
            return bridge.refuse(event, text)


class _Connection(asyncio.Protocol):
    """One client; its requests are answered one after the other, and given up when it goes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parts: list[bytes] = []
        self._size = 0
        self._task: asyncio.Task[None] | None = None
        self._scope = anyio.CancelScope()
        self._lines: list[bytes] = []
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(HELLO.encode())

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if b"\n" in data:
            *lines, rest = b"".join(self._parts).split(b"\n")
            self._parts, self._size = [rest], len(rest)
            self._lines += lines
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._answer())
        elif self._size > _LONGEST:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._scope.cancel()  # not the task, which would break off what is shielded: loading hooks

    async def _answer(self) -> None:
        try:
            with self._scope:
                while self._lines:
                    self._transport.write(await self._server.handle(self._lines.pop(0)))
        finally:
            self._task = None
            self._scope = anyio.CancelScope()


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
