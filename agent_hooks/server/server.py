r"""The resident process: listens on a Unix socket in a private directory, one JSON array or object a line.

    → [{"agent_hooks": "0.1.0", "protocol": 2, "do": "answer", "agent": "claude-code", "event": "PreToolUse",
        "environment": {…}}, {…}]                         the second is the payload
    ← {"agent_hooks": "0.1.0", "protocol": 2}
    ← [0, {…}]                                            exit code and what to print
    → [{…, "do": "tell", "agent": "claude-code", "event": "Notification"}, {…}]     by HTTP: see `http`
    → [{"do": "status"}, null]   [{"do": "stop"}, null]   [{"do": "look"}, null]      at the settings, for ports
    ← {"pid": …, "project": "…", …}

The server's first line tells its version, and comes once the client has said something: with the answer, or as soon as
the event is being judged.  Until the first project with hooks is met, there is no event loop but `lines`.
Above: cli.  Below: sessions, lines, ports, log_file, tasks, stub, deadlines.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agent_hooks import __version__
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import SILENCE, UNJUDGED, UNREADABLE, Bridge, BridgeError, Happening, Reply
from agent_hooks.concurrency.deadlines import in_asyncio_task
from agent_hooks.concurrency.stepping import first_step, rest_of
from agent_hooks.errors import AgentHooksError, describe, log
from agent_hooks.server.lines import Connection, Lines
from agent_hooks.server.log_file import shorten
from agent_hooks.server.ports import Ports
from agent_hooks.server.sessions import Find, Sessions
from agent_hooks.server.stub import HELLO, LIMIT, PROTOCOL
from agent_hooks.server.tasks import Tasks
from agent_hooks.storage.locks import try_lock

if TYPE_CHECKING:
    import anyio

IDLE = 1800.0  # seconds without an event and without a living session, after which the server ends
_LOOK_ROUND = 15.0  # seconds between looks whether agents have died
_GRACE = 3.0  # seconds that hooks get to end with the server
_LONGEST = LIMIT + 65536  # bytes of a line
_BACKLOG = 100  # connections that wait to be accepted
_SILENCE = b"[0, {}]\n"  # the commonest answer
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Request(Struct):
    """What a client wants; one that wants an answer has to be of our version."""

    do: str
    agent_hooks: str = ""
    protocol: int = 0
    agent: str = ""
    event: str = ""
    environment: dict[str, str] = {}


_decode = msgspec.json.Decoder(tuple[Request, Any]).decode


class Server:
    """Answers events of one project until it is told to stop, or is idle for `idle` seconds."""

    def __init__(self, path: str, project: str, find: Find, *, idle: float = IDLE) -> None:
        self.path = path
        self.project = project
        self.answered = 0
        self._idle = idle
        self._look_every = min(_LOOK_ROUND, idle)
        self._began = time.time()
        self._looked = time.monotonic()
        self._socket: tuple[int, int] | None = None
        self._tasks = Tasks()
        self._sessions = Sessions(find, self._tasks)
        self._stopped = False
        self._told: anyio.Event | None = None  # set when it is stopped, for who waits in a loop
        self._lines: Lines
        self._ports: Ports

    # ---- its life

    def serve(self) -> bool:
        """Serve; returns at once, with `False`, if another process serves already."""
        with os.fdopen(os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+b", 0) as lock:
            if not try_lock(lock.fileno()):
                return False
            with suppress(OSError):  # whom to end should it be stuck; a full disk is no reason not to serve
                lock.truncate(0)
                lock.write(f"{os.getpid()}\n".encode())
            self._listen()
            for close in (lock.close, self._lines.forsake):  # what a hook forks may outlive this process
                os.register_at_fork(after_in_child=close)
            self._serve_without_loop()
            if self._stopped:
                self._listen_no_more()
                self._lines.close()
            else:
                import anyio  # here, for without hooks there is no event loop

                anyio.run(self._serve_in_loop)
        return True

    async def serve_in_loop(self) -> None:
        """Serve in asyncio's loop from the start, as one part of a program."""
        self._listen()
        await self._serve_in_loop()

    def stop(self) -> None:
        """End soon."""
        self._stopped = True
        if self._told is not None:
            self._told.set()

    def _serve_without_loop(self) -> None:
        """Serve until it is stopped, or something needs an event loop."""
        woken, waker = socket.socketpair()
        with woken, waker:
            woken.setblocking(False)
            waker.setblocking(False)
            for number in _SIGNALS:
                signal.signal(number, lambda number, frame: self.stop())
            signal.set_wakeup_fd(waker.fileno())  # or one that comes just before the waiting begins would not end it
            self._lines.watch(woken)
            while not self._stopped and not self._tasks.waiting:
                self._lines.round(self._look_every)
                self._look_round()
            self._lines.unwatch(woken)
            signal.set_wakeup_fd(-1)

    async def _serve_in_loop(self) -> None:
        import asyncio

        import anyio

        self._told = anyio.Event()
        if self._stopped:
            self._told.set()
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as group:
            for number in _SIGNALS:
                loop.add_signal_handler(number, self.stop)
            self._tasks.use(group)
            loop.add_reader(self._lines.fileno(), self._lines.round)
            group.start_soon(self._watch)
            await self._told.wait()
            self._listen_no_more()
            with anyio.move_on_after(_GRACE):
                await self._sessions.end()
            loop.remove_reader(self._lines.fileno())
            self._lines.close()
            group.cancel_scope.cancel()

    async def _watch(self) -> None:
        import anyio

        while True:
            await anyio.sleep(self._look_every)
            self._look_round()

    def _look_round(self) -> None:
        """End what nobody needs any more: from time to time, however often it is called."""
        now = time.monotonic()
        if now - self._looked < self._look_every:
            return
        self._looked = now
        shorten(f"{self.path}.log")
        self._lines.look_for_room()
        self._ports.look()
        self._sessions.end_the_dead()
        idle = now - self._sessions.idle_since() >= self._idle
        if idle or not self._is_reached() or not os.path.isdir(self.project):
            self.stop()

    def _listen(self) -> None:
        """Listen, under a name that appears only once that works."""
        new = f"{self.path}.new"
        with suppress(FileNotFoundError):
            os.unlink(new)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(new)
        listening.listen(_BACKLOG)
        self._lines = Lines(listening, self._take, greeting=HELLO.encode(), longest=_LONGEST)
        self._ports = Ports(self._lines, self.project)
        self._ports.look()
        os.rename(new, f"{self.path}.socket")
        self._socket = self._found()

    def _listen_no_more(self) -> None:
        if self._is_reached():  # so that the next event starts another one
            os.unlink(f"{self.path}.socket")
        self._lines.stop_listening()

    def _is_reached(self) -> bool:
        """Tell whether the socket is ours still: /tmp is tidied up, and then another one may serve already."""
        return self._socket is not None and self._found() == self._socket

    def _found(self) -> tuple[int, int] | None:
        with suppress(OSError):
            state = os.stat(f"{self.path}.socket")
            return state.st_ino, state.st_ctime_ns  # a number alone is given out again
        return None

    # ---- its answers

    def _take(self, connection: Connection, line: bytes) -> bytes | None:
        """Answer a line at once, if that can be."""
        answering = self.handle(line)
        try:
            # the answer to the line before may have come in a task: what goes on there would wait in the midst of it
            done = None if in_asyncio_task() else first_step(answering)
        except Exception as exc:  # a bug: others have to be answered still
            log().exception("failed at a line")
            return _line({"error": describe(exc)})
        if done is None:
            self._tasks.later(self._finish, connection, answering)
        return done and done[0]

    async def _finish(self, connection: Connection, answering: Coroutine[Any, Any, bytes]) -> None:
        """Answer a line in a task, which is given up when the client goes."""
        import anyio

        with anyio.CancelScope() as scope:
            connection.ended = scope.cancel
            if connection.gone:
                scope.cancel()
            connection.answer(await rest_of(answering))

    async def handle(self, line: bytes) -> bytes:
        """Return the answer to a request, as a line."""
        try:
            request, payload = _read(line)
        except (ValueError, TypeError, RecursionError) as exc:
            return _line({"error": f"no request: {describe(exc)}"})
        match request.do:
            case "answer" | "tell" if (request.agent_hooks, request.protocol) != (__version__, PROTOCOL):
                return _line({"error": f"this is agent_hooks {__version__}, protocol {PROTOCOL}"})
            case "answer" | "tell":
                return await self._answer(request, payload)
            case "status":
                return _line(self.status())
            case "look":
                self._ports.look()
                return _line(self.status())
            case "stop":
                self.stop()
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
            "ports": self._ports.numbers,
            "seconds": round(time.time() - self._began),
        }

    async def _answer(self, request: Request, payload: Any) -> bytes:
        self.answered += 1
        try:
            bridge = open_bridge(request.agent)
        except KeyError:
            return _line({"error": f"no such agent: {request.agent}"})
        event: str | None = request.event or None
        try:
            if not bridge.runs_here(request.environment):  # another agent that reads the same settings
                return _SILENCE
            happening = bridge.decode(payload)
            event = happening.name
            if request.do == "tell":
                reply = await self._hear(bridge, happening)
            else:
                verdict = await self._sessions.answer(bridge, happening, request.environment)
                reply = bridge.encode(happening, verdict)
            if reply is SILENCE:
                return _SILENCE
        except BaseException as exc:  # SystemExit of a hook, a bug: nothing may pass for a yes
            if _is_cancellation(exc):
                raise
            if isinstance(exc, BridgeError):
                text = f"{UNREADABLE}: {exc}"
            else:
                text = f"{UNJUDGED}: {exc if isinstance(exc, AgentHooksError) else describe(exc)}"
                log().exception("failed at %s", event or "an event")
            reply = bridge.refuse(event, text)
        return f"[{reply.exit_code}, {reply.stdout.strip()}]\n".encode()  # it is one line: `Reply.of`

    async def _hear(self, bridge: Bridge, happening: Happening) -> Reply:
        """Answer what came by HTTP: an event that decides nothing, of a session that a command has told of."""
        environment = self._sessions.environment(bridge, happening)
        row = next((row for row in bridge.describe() if row.name == happening.name), None)
        if row is None or not row.decides_nothing:
            why = f"{happening.name} is not for HTTP: to mend it: agent-hooks install {bridge.name} --http"
        elif environment is None:
            why = f"no command has told of session {happening.session_id} yet"
        else:
            return bridge.encode(happening, await self._sessions.answer(bridge, happening, environment))
        log().warning("%s was not heard: %s", happening.name, why)
        return bridge.refuse(happening.name, f"agent-hooks did not hear of this: {why}")


def _read(line: bytes) -> tuple[Request, Any]:
    """Return a request and its payload; raises `ValueError`, `TypeError` or `RecursionError` for any other line."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeError):  # the other decoder takes half of a surrogate pair too
        head, payload = json.loads(line)
        return msgspec.convert(head, Request), payload


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _is_cancellation(exc: BaseException) -> bool:
    asyncio = sys.modules.get("asyncio")  # if it is not there, nothing is cancelled
    return isinstance(exc, GeneratorExit) or (asyncio is not None and isinstance(exc, asyncio.CancelledError))
