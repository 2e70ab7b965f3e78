"""The resident process: it listens on a Unix socket in a private directory, and answers the lines of `events`.

Until the first event of a project with hooks, the process has no event loop but `lines`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from agent_hooks import __version__
from agent_hooks.bridges import usable_bridges
from agent_hooks.concurrency.deadlines import in_asyncio_task
from agent_hooks.concurrency.numbers import high, high_numbers
from agent_hooks.concurrency.stepping import first_step, rest_of
from agent_hooks.errors import AgentHooksError, describe, log
from agent_hooks.server.client import NONCE, digest_of, signature
from agent_hooks.server.events import Events, error_line, read_request, to_line
from agent_hooks.server.files import ServerFiles, is_server, reopen_if_removed, server_key, shorten
from agent_hooks.server.garbage import free_ended
from agent_hooks.server.lines import Connection, LineServer
from agent_hooks.server.ports import Ports
from agent_hooks.server.session import FindHooks
from agent_hooks.server.sessions import Sessions
from agent_hooks.server.stub import HELLO, LIMIT, PROTOCOL
from agent_hooks.server.tasks import Tasks, failure_text
from agent_hooks.storage.files import StorageError
from agent_hooks.storage.locks import try_lock

if TYPE_CHECKING:
    import asyncio

    from agent_hooks.server.seat import Seat

IDLE = 1800.0
"""Seconds without an event and without a living agent after which the server ends."""
_MAINTENANCE = 15.0
"""Seconds from one maintenance to the next."""
_GRACE = 3.0
"""Seconds that hooks have to end with the server."""
_LONGEST = LIMIT + 65536
"""The length of the longest line, in bytes."""
_SIGNED = NONCE.encode()
Sign = Callable[[bytes], bytes]
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Server:
    """Answers the events of one project until it is stopped, or until it is idle for `idle` seconds."""

    def __init__(self, path: str, project: str, find_hooks: FindHooks, *, idle: float = IDLE) -> None:
        self.path = path
        self.project = project
        self._idle = idle
        self._interval = min(_MAINTENANCE, idle)
        self._started = time.time()
        self._maintained = monotonic()
        self._files = ServerFiles(path)
        self._key = b""
        self._tasks = Tasks()
        self._sessions = Sessions(find_hooks, self._tasks)
        self._events = Events(self._sessions)
        self._stopped = False
        # This object is the whole process, and may restore its state.
        self._is_process = False
        # Set when the server is stopped while an event loop runs.
        self._stop_event: asyncio.Event | None = None
        self._lines: LineServer
        self._ports: Ports
        # The port of a mod; `None` before the first one asks for it.
        self._seat: Seat | None = None

    # ---- from start to end

    def serve(self) -> bool:
        """Serve until the end.  Returns `False` at once if another process serves this project."""
        self._is_process = True
        with os.fdopen(high(os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)), "r+b", 0) as lock:
            if not try_lock(lock.fileno()):
                return False
            if not self._files.is_locked_by(lock.fileno()):
                return False
            reopen_if_removed(f"{self.path}.log")
            # `serve --stop` reads the process id if the server is stuck.  A full disk is no reason not to serve.
            with suppress(OSError):
                lock.truncate(0)
                lock.write(f"{os.getpid()}\n".encode())
            with high_numbers():
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
            from agent_hooks.server.endless import run_to_the_end

            run_to_the_end(self._serve_in_loop)

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

        self._stop_event = asyncio.Event()
        if self._stopped:
            self._stop_event.set()
        loop = asyncio.get_running_loop()
        self._add_signal_handlers()
        if self._is_process:
            from agent_hooks.hooks.forgetting import adopt_exit_functions
            from agent_hooks.server.endless import Edge

            adopt_exit_functions()
            edge = Edge(self._add_signal_handlers)
            self._tasks.edge = edge

            def poll() -> None:
                edge.restore()
                self._lines.poll()

            loop.add_reader(self._lines.fileno(), poll)
        else:
            loop.add_reader(self._lines.fileno(), self._lines.poll)
        self._tasks.start()
        self._tasks.later(self._maintain_regularly)
        while not self._stopped:
            # A hook that cancels all tasks does not end the server.
            with suppress(asyncio.CancelledError):
                await self._stop_event.wait()
        self._stop_listening()
        self._sessions.end()
        await self._tasks.end(_GRACE)
        loop.remove_reader(self._lines.fileno())
        self._lines.close()

    def _add_signal_handlers(self) -> None:
        import asyncio

        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self.stop)

    def _listen(self) -> None:
        self._key = server_key()
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
        import asyncio

        assert self._stop_event is not None, "an event loop runs"
        while not self._stopped:
            # As in `_serve_in_loop`.
            with suppress(TimeoutError, asyncio.CancelledError):
                async with asyncio.timeout(self._interval):
                    await self._stop_event.wait()
            self._maintain_if_due()

    def _maintain_if_due(self) -> None:
        now = monotonic()
        if now - self._maintained >= self._interval:
            self._maintained = now
            self._maintain(now)

    def _maintain(self, now: float) -> None:
        """Shorten the log, refresh the ports, and end all that is no longer needed, if need be the server itself."""
        try:
            self._maintain_all(now)
        # A bug of ours, or a hook has replaced a function of the standard library.  The events are still answered.
        except Exception:
            log().exception("the maintenance failed")

    def _maintain_all(self, now: float) -> None:
        shorten(f"{self.path}.log")
        self._lines.resume_accepting()
        self._ports.refresh()
        self._sessions.end_abandoned(self._idle)
        if self._seat is not None:
            self._seat.refresh(is_used=len(self._sessions) > 0)
        free_ended()
        if self._files.is_replaced() and not is_server(f"{self.path}.socket", self._key):
            self._take_back()
        is_idle = now - self._sessions.idle_since() >= self._idle
        if is_idle or not self._files.is_published() or not os.path.isdir(self.project):
            self.stop()

    def _take_back(self) -> None:
        """Raise the alarm, and serve under the name of the socket again, which another program has taken."""
        reason = f"another program took the place of {self.path}.socket"
        log().error("%s", reason)
        self._sessions.raise_alarm(reason)
        self._lines.listen(self._files.listen(), Connection)
        self._files.publish()

    # ---- answers

    def _respond(self, connection: Connection, line: bytes) -> bytes | None:
        """Return the answer to a line; `None` if it needs an event loop, in which the answer then comes later."""
        sign = self._signer(line)
        answering = self.handle(line, lambda: self._is_wanted(connection))
        try:
            # In a task, the answer to the previous line has just come.  This line gets a task of its own, because it may
            # have to wait, and would hold up the first one.
            done = None if in_asyncio_task() else first_step(answering)
        # A bug of ours.  This client gets it as an error, by which a gate is refused.  The others are still served.
        except Exception as exc:
            log().exception("failed at a line")
            return sign(error_line(describe(exc)))
        if done is None:
            failed = partial(self._answer_failed, connection, sign)
            self._tasks.later(self._answer_later, connection, answering, sign, failed=failed)
        return done and sign(done[0])

    def _signer(self, line: bytes) -> Sign:
        """Return the function that signs the answer to a line, if its client asks for a signature."""
        if not line.startswith(_SIGNED):
            return bytes
        digest = digest_of(line)
        return lambda answer: signature(self._key, digest, answer) + b" " + answer

    def _is_wanted(self, connection: Connection) -> bool:
        """Return whether a client waits for its answer; a server that ends lets it wait no longer."""
        return not connection.closed and not self._tasks.ended

    async def _answer_later(self, connection: Connection, answering: Coroutine[Any, Any, bytes], sign: Sign) -> None:
        """Answer a line in a task, which is cancelled if the client goes."""
        import asyncio

        task = asyncio.current_task()
        assert task is not None, "this is a task"
        connection.on_close = task.cancel
        if connection.closed:
            task.cancel()
        try:
            connection.answer(sign(await rest_of(answering)))
        # The client has gone, or code of a hook has left the process in a state in which no answer can be made.
        except BaseException as exc:
            raise AgentHooksError(failure_text(exc)) from exc

    def _answer_failed(self, connection: Connection, sign: Sign, exc: BaseException) -> None:
        """Answer a client whose task has failed, after the state of the process was restored; it refuses a gate."""
        if self._is_wanted(connection):
            connection.answer(sign(error_line(describe(exc))))

    async def handle(self, line: bytes, is_wanted: Callable[[], bool] = lambda: True) -> bytes:
        """Return the answer to a line, as a line; `is_wanted` tells whether the client still waits."""
        try:
            request, payload = read_request(line)
        except (ValueError, TypeError, RecursionError) as exc:
            return error_line(f"no request: {describe(exc)}")
        match request.do:
            case "answer" | "link" | "tell" if not request.is_current:
                return error_line(f"this is agent_hooks {__version__}, protocol {PROTOCOL}")
            case "answer" | "link" | "tell":
                return await self._events.answer(request, payload, is_wanted)
            case "status":
                pass
            case "look":
                self._ports.refresh()
            case "seat":
                try:
                    self._open_seat()
                except (OSError, StorageError) as exc:
                    return error_line(f"no port for a mod: {describe(exc)}")
            case _:
                return error_line(f"no such request: {request.do}")
        return to_line(self.status())

    def _open_seat(self) -> None:
        # Imported here, because most servers need no HTTP.
        from agent_hooks.installs.places import installations
        from agent_hooks.server.mod_files import mod_key
        from agent_hooks.server.seat import Seat

        key = mod_key()
        if self._seat is not None and self._seat.key != key:
            self._seat.close()
            self._seat = None
        # A mod is loaded in all projects.  Where nothing is installed, it judges nothing.
        if any(
            each.entries for bridge in usable_bridges() if bridge.mod for each in installations(bridge, self.project)
        ):
            self._seat = self._seat or Seat(self._lines, key)
            self._seat.open()

    def status(self) -> Mapping[str, Any]:
        """Return the fields that `agent-hooks serve --status` shows."""
        return {
            "version": __version__,
            "pid": os.getpid(),
            "project": self.project,
            "path": self.path,
            "sessions": len(self._sessions),
            "events": self._events.count,
            "modules": len(sys.modules),
            "ports": self._ports.numbers,
            "seat": self._seat.number if self._seat else 0,
            "seconds": round(time.time() - self._started),
        }
