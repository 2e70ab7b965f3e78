"""The connection of a hook's process to the agent: messages out from any thread, and requests that wait for a reply."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio

from agent_hooks.concurrency.deadlines import call_soon
from agent_hooks.concurrency.reading import is_read, read_with
from agent_hooks.errors import AgentHooksError, HookUsageError, SendError
from agent_hooks.isolation.protocol import Ask, Frames, Message, Reply, Stop, framed, from_agent

_CHUNK = 1 << 18


class AgentAnswerError(AgentHooksError):
    """The agent could not open a dialog or run a program; the text is that of its error."""


ERRORS: dict[str, type[AgentHooksError]] = {"HookUsageError": HookUsageError, "SendError": SendError}


class Link:
    """Sends messages, and takes those of the agent.

    Writing waits until the agent reads: it always does, and it never waits for this process itself.
    """

    def __init__(self, connection: socket.socket, frames: Frames, waiting: list[bytes]) -> None:
        self._socket = connection
        self._frames = frames
        self._waiting = deque(waiting)
        self._lock = threading.Lock()
        self._loop = threading.get_ident()
        self._numbers = 0
        self._replies: dict[int, Callable[[Reply], object]] = {}
        self._take: Callable[[Any], object] = lambda message: None
        connection.setblocking(False)
        # A forked copy must not speak for this process.
        os.register_at_fork(after_in_child=self._cut)

    def _cut(self) -> None:
        self._lock = threading.Lock()
        self._socket.close()

    # ---- out

    def send(self, message: Message) -> None:
        """Send a message, from any thread.  Raises `ProtocolError` for one that is too large."""
        data = memoryview(framed(message))
        with self._lock:
            while data:
                try:
                    data = data[self._socket.send(data) :]
                except BlockingIOError:
                    _wait(self._socket, select.POLLOUT)

    # ---- in

    async def read(self, take: Callable[[Any], object]) -> None:
        """Call `take` with each message of the agent until it closes the socket; replies go to those that wait."""
        self._take = take
        self._pass_on()

        def ready() -> bool:
            more = self._receive()
            self._pass_on()
            return more

        await read_with(self._socket, ready)

    @property
    def hears(self) -> bool:
        """Whether the event loop still reads the messages of the agent."""
        return is_read(self._socket)

    def _pass_on(self) -> None:
        while self._waiting:
            message = from_agent(self._waiting.popleft())
            if isinstance(message, Reply):
                self._settle(message)
            else:
                self._take(message)

    def _receive(self) -> bool:
        """Read the bytes that are there; return `False` when the agent has closed the socket."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._waiting.extend(self._frames.feed(data))
        return bool(data)

    def _settle(self, reply: Reply) -> None:
        if (take := self._replies.pop(reply.request, None)) is not None:
            take(reply)

    # ---- requests

    def _number(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    async def request(self, call: int, method: Any, arguments: Any) -> Any:
        """Ask the agent for a dialog or a program, and wait for its result; on the event loop."""
        number = self._number()
        done = anyio.Event()
        found: list[Reply] = []

        def take(reply: Reply) -> None:
            found.append(reply)
            done.set()

        self._replies[number] = take
        try:
            self.send(Ask(number, call, method, arguments))
            await done.wait()
        finally:
            if not found:
                self._replies.pop(number, None)
                self.send(Stop(number, call))
        return _value(found[0])

    def request_now(self, make: Callable[[int], Message]) -> Any:
        """Send a request and wait for its reply without an `await`, on the event loop or in another thread."""
        number = self._number()
        done = threading.Event()
        found: list[Reply] = []

        def take(reply: Reply) -> None:
            found.append(reply)
            done.set()

        self._replies[number] = take
        self.send(make(number))
        if threading.get_ident() == self._loop:
            self._wait_for(found)
        else:
            done.wait()
        return _value(found[0])

    def _wait_for(self, found: list[Reply]) -> None:
        """Read in place of the event loop, which stands still meanwhile; other messages wait for it."""
        while not found:
            for message in tuple(self._waiting):
                reply = from_agent(message)
                if isinstance(reply, Reply):
                    self._waiting.remove(message)
                    self._settle(reply)
            if found:
                if self._waiting and (soon := call_soon()) is not None:
                    # The socket has no sign of messages that were read here.
                    soon(self._pass_on)
                return
            _wait(self._socket, select.POLLIN)
            if not self._receive():
                raise AgentAnswerError("the agent has ended")


def _wait(connection: socket.socket, event: int) -> None:
    poll = select.poll()
    poll.register(connection.fileno(), event)
    poll.poll()


def _value(reply: Reply) -> Any:
    if reply.error is not None:
        raise ERRORS.get(reply.kind, AgentAnswerError)(reply.error)
    return reply.value
