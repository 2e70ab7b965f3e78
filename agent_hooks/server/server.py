"""The resident process: it listens on a Unix socket in a private directory, and answers the lines of `requests`.

Until the first event of a project with hooks, the process has no event loop but `lines`.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent_hooks import __version__
from agent_hooks.concurrency.deadlines import in_asyncio_task
from agent_hooks.concurrency.stepping import first_step, rest_of
from agent_hooks.errors import describe, log
from agent_hooks.server.events import Events
from agent_hooks.server.files import ServerFiles
from agent_hooks.server.lines import Connection, LineServer
from agent_hooks.server.log_file import reopen_if_removed, shorten
from agent_hooks.server.ports import Ports
from agent_hooks.server.requests import error_line, read_request, to_line
from agent_hooks.server.sessions import FindHooks, Sessions
from agent_hooks.server.stub import HELLO, LIMIT, PROTOCOL
from agent_hooks.server.tasks import Tasks
from agent_hooks.storage.locks import try_lock

if TYPE_CHECKING:
    import anyio

IDLE = 1800.0
"""Seconds without an event and without a living agent after which the server ends."""
_MAINTENANCE = 15.0
"""Seconds from one maintenance to the next."""
_GRACE = 3.0
"""Seconds that hooks have to end with the server."""
_LONGEST = LIMIT + 65536
"""The length of the longest line, in bytes."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Server:
    """Answers the events of one project until it is stopped, or until it is idle for `idle` seconds."""

    def __init__(self, path: str, project: str, find_hooks: FindHooks, *, idle: float = IDLE) -> None:
        self.path = path
        self.project = project
        self._idle = idle
        self._interval = min(_MAINTENANCE, idle)
        self._started = time.time()
        self._maintained = time.monotonic()
        self._files = ServerFiles(path)
        self._tasks = Tasks()
        self._sessions = Sessions(find_hooks, self._tasks)
        self._events = Events(self._sessions)
        self._stopped = False
        # Set when the server is stopped while an event loop runs.
        self._stop_event: anyio.Event | None = None
        self._lines: LineServer
        self._ports: Ports

    # ---- from start to end

    def serve(self) -> bool:
        """Serve until the end.  Returns `False` at once if another process serves this project."""
        with os.fdopen(os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+b", 0) as lock:
            if not try_lock(lock.fileno()):
                return False
            if not self._files.is_locked_by(lock.fileno()):
                return False
            reopen_if_removed(f"{self.path}.log")
            # `serve --stop` reads the process id if the server is stuck.  A full disk is no reason not to serve.
            with suppress(OSError):
                lock.truncate(0)
                lock.write(f"{os.getpid()}\n".encode())
            self._listen()
            # A process that a hook forks may outlive this one, and must not hold the lock or the sockets.
            for close in (lock.close, self._lines.close_after_fork):
                os.register_at_fork(after_in_child=close)
            self._serve_with_or_without_loop()
            self._files.remove(lock.fileno())
        return True

    async def serve_in_loop(self) -> None:
        """Serve in the event loop of asyncio from the start, as a part of a program."""
        self._listen()
        await self._serve_in_loop()

    def stop(self) -> None:
        """Let the server end soon."""
        self._stopped = True
        if self._stop_event is not None:
            self._stop_event.set()

    def _serve_with_or_without_loop(self) -> None:
        self._serve_without_loop()
        if self._stopped:
            self._stop_listening()
            self._lines.close()
        else:
            # Imported here, because a server without hooks needs no event loop.
            import anyio

            anyio.run(self._serve_in_loop)

    def _serve_without_loop(self) -> None:
        """Serve until the server is stopped or an answer needs an event loop."""
        woken, waker = socket.socketpair()
        with woken, waker:
            woken.setblocking(False)
            waker.setblocking(False)
            for number in _SIGNALS:
                signal.signal(number, lambda number, frame: self.stop())
            # Without this, a signal that comes just before `poll` begins to wait would not end the waiting.
            signal.set_wakeup_fd(waker.fileno())
            self._lines.watch(woken)
            while not self._stopped and not self._tasks.waiting:
                self._lines.poll(self._interval)
                self._maintain_if_due()
            self._lines.unwatch(woken)
            signal.set_wakeup_fd(-1)

    async def _serve_in_loop(self) -> None:
        import asyncio

        import anyio

        self._stop_event = anyio.Event()
        if self._stopped:
            self._stop_event.set()
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as group:
            for number in _SIGNALS:
                loop.add_signal_handler(number, self.stop)
            self._tasks.use(group)
            loop.add_reader(self._lines.fileno(), self._lines.poll)
            group.start_soon(self._maintain_regularly)
            await self._stop_event.wait()
            self._stop_listening()
            with anyio.move_on_after(_GRACE):
                await self._sessions.end()
            loop.remove_reader(self._lines.fileno())
            self._lines.close()
            group.cancel_scope.cancel()

    def _listen(self) -> None:
        listener = self._files.listen()
        self._lines = LineServer(listener, self._respond, greeting=HELLO.encode(), longest=_LONGEST)
        self._ports = Ports(self._lines, self.project)
        self._ports.refresh()
        self._files.publish()

    def _stop_listening(self) -> None:
        self._files.unpublish()
        self._lines.stop_listening()

    # ---- maintenance

    async def _maintain_regularly(self) -> None:
        import anyio

        while True:
            await anyio.sleep(self._interval)
            self._maintain_if_due()

    def _maintain_if_due(self) -> None:
        now = time.monotonic()
        if now - self._maintained >= self._interval:
            self._maintained = now
            self._maintain(now)

    def _maintain(self, now: float) -> None:
        """Shorten the log, refresh the ports, and end all that is no longer needed, if need be the server itself."""
        shorten(f"{self.path}.log")
        self._lines.resume_accepting()
        self._ports.refresh()
        self._sessions.end_abandoned(self._idle)
        is_idle = now - self._sessions.idle_since() >= self._idle
        if is_idle or not self._files.is_published() or not os.path.isdir(self.project):
            self.stop()

    # ---- answers

    def _respond(self, connection: Connection, line: bytes) -> bytes | None:
        """Return the answer to a line; `None` if it needs an event loop, in which the answer then comes later."""
        answering = self.handle(line)
        try:
            # In a task, the answer to the previous line has just come.  This line gets a task of its own, because it may
            # have to wait, and would hold up the first one.
            done = None if in_asyncio_task() else first_step(answering)
        # A bug of ours.  This client gets it as an error, by which a gate is refused.  The others are still served.
        except Exception as exc:
            log().exception("failed at a line")
            return error_line(describe(exc))
        if done is None:
            self._tasks.later(self._answer_later, connection, answering)
        return done and done[0]

    async def _answer_later(self, connection: Connection, answering: Coroutine[Any, Any, bytes]) -> None:
        """Answer a line in a task, which is cancelled if the client goes."""
        import anyio

        with anyio.CancelScope() as scope:
            connection.on_close = scope.cancel
            if connection.closed:
                scope.cancel()
            connection.answer(await rest_of(answering))

    async def handle(self, line: bytes) -> bytes:
        """Return the answer to a line, as a line."""
        try:
            request, payload = read_request(line)
        except (ValueError, TypeError, RecursionError) as exc:
            return error_line(f"no request: {describe(exc)}")
        match request.do:
            case "answer" | "tell" if not request.is_current:
                return error_line(f"this is agent_hooks {__version__}, protocol {PROTOCOL}")
            case "answer" | "tell":
                return await self._events.answer(request, payload)
            case "status":
                pass
            case "look":
                self._ports.refresh()
            case "stop":
                self.stop()
            case _:
                return error_line(f"no such request: {request.do}")
        return to_line(self.status())

    def status(self) -> Mapping[str, Any]:
        """Return the fields that `agent-hooks serve --status` shows."""
        return {
            "version": __version__,
            "pid": os.getpid(),
            "project": self.project,
            "path": self.path,
            "sessions": len(self._sessions),
            "events": self._events.count,
            "ports": self._ports.numbers,
            "seconds": round(time.time() - self._started),
        }
