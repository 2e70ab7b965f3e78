"""One run of a hook's process: its connection, its output, and the calls that it works on."""

from __future__ import annotations

import os
from collections import deque
from typing import Any

import anyio

from agent_hooks.errors import log
from agent_hooks.isolation.launch import Started
from agent_hooks.isolation.output import Output
from agent_hooks.isolation.protocol import Failed, Frames, Loaded, Message, Result, framed

# Seconds in which the process ends by itself when the agent has closed the connection, and after it was killed.
END_GRACE = 1.0
_CHUNK = 1 << 18


class Pending:
    """A call that the process works on, and the messages about it."""

    __slots__ = ("ended", "event", "id", "messages")

    def __init__(self, id: int) -> None:
        self.id = id
        self.ended = False
        self.messages: deque[Any] = deque()
        self.event: anyio.Event | None = None

    def put(self, message: Any) -> None:
        """Add a message and wake the caller."""
        self.messages.append(message)
        if is_last(message):
            self.ended = True
        if self.event is not None:
            self.event.set()

    async def next(self) -> Any:
        """Wait for the next message and return it."""
        while not self.messages:
            self.event = anyio.Event()
            await self.event.wait()
        return self.messages.popleft()

    async def end(self) -> None:
        """Wait until the call has ended."""
        while not self.ended:
            self.event = anyio.Event()
            await self.event.wait()


def is_last(message: object) -> bool:
    """Tell whether a message ends its call; an exception stands for the end of the process."""
    return isinstance(message, Result | Failed | Loaded | BaseException)


class Running:
    """One run of the process, from its start to its end."""

    def __init__(self, started: Started, output: Output) -> None:
        self.started = started
        self.calls: dict[int, Pending] = {}
        # The scopes of the dialogs and programs of code that belongs to no running call, by request.
        self.late: dict[int, anyio.CancelScope] = {}
        self.alive = True
        # Set when the hook is loaded.
        self.loaded = False
        # Why it was killed, if the agent did that.
        self.killed = ""
        # Set when a later run has begun.
        self.replaced = False
        # Set when the agent ends it.
        self.expected = False
        self._frames = Frames()
        self._output = output
        self._unsent = bytearray()
        self._writable: anyio.Event | None = None

    # ---- the connection

    def send(self, message: Message) -> None:
        """Send a message, later if the socket is full.  Raises `ProtocolError` for one that is too large."""
        data = framed(message)
        if not self.alive:
            return
        if not self._unsent:
            try:
                sent = self.started.socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                # The reader finds the end of the process.
                return
            if sent == len(data):
                return
            data = data[sent:]
        self._unsent += data
        if self._writable is not None:
            self._writable.set()

    async def write(self) -> None:
        """Send the rest of messages that did not fit into the socket, until cancelled."""
        while True:
            while not self._unsent:
                self._writable = anyio.Event()
                await self._writable.wait()
            await anyio.wait_writable(self.started.socket)
            try:
                sent = self.started.socket.send(memoryview(self._unsent)[:_CHUNK])
            except BlockingIOError:
                continue
            except OSError:
                return
            del self._unsent[:sent]

    def receive(self) -> list[bytes] | None:
        """Return the whole messages that there are to read, `None` at their end.  Raises `ProtocolError`."""
        try:
            data = self.started.socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return list(self._frames.feed(data)) if data else None

    # ---- the output

    async def read_output(self) -> None:
        """Show the output of the process, until it has closed its output."""
        while True:
            await anyio.wait_readable(self.started.output)
            if not self._take_output():
                return

    def _take_output(self) -> bool:
        """Show the output that can be read now; return whether more may come."""
        if not self.started.end.alive:
            return False
        try:
            data = os.read(self.started.output, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._output.feed(data)
        return bool(data)

    # ---- the end

    def stop_late(self, *requests: int) -> None:
        """End these dialogs and programs of code that belongs to no running call; they get no answer."""
        for each in requests:
            if (scope := self.late.pop(each, None)) is not None:
                scope.cancel()

    def kill(self, why: str) -> None:
        """Kill the process group, which gets no further call; the reader finds its end."""
        if self.alive:
            self.alive = False
            self.killed = why
            self.started.kill()

    async def close(self) -> None:
        """Close the connection, so that the process ends, and collect it."""
        self.expected = True
        self.started.hang_up()
        await self.collect(kill=False)

    async def collect(self, *, kill: bool = True) -> int | None:
        """Show the last output of a process that ends, and return its exit code; the rest of its group is killed."""
        self.alive = False
        if kill:
            self.started.kill()
        with anyio.move_on_after(END_GRACE):
            while self._take_output():
                with anyio.move_on_after(0.01):
                    await anyio.wait_readable(self.started.output)
        code = None
        with anyio.move_on_after(END_GRACE):
            while code is None:
                self.started.kill()
                if (code := self.started.exit_code()) is None:
                    await anyio.sleep(0.002)
        self._output.end()
        if code is None:
            log().error("the process %d of a hook was killed and does not end", self.started.pid)
        else:
            self.started.end()
        return code
