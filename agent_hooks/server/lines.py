"""Connections that carry lines, and the waiting for them.

This needs no event loop, which is what most of the time and memory of a small server goes into; but one can drive it:
what is ready in `lines` makes `lines.fileno()` ready.  Above: server.  Below: nothing.
"""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Callable
from functools import partial

_CHUNK = 1 << 16  # bytes read at once
Take = Callable[["Connection", bytes], bytes | None]
Connect = Callable[["Lines", socket.socket], "Connection"]


class Lines:
    """Takes lines from all who connect: `while …: lines.round(timeout)`.

    `take(connection, line)` returns the answer, or `None` if `connection.answer` will be called with it later.
    `greeting`: what a client is told first, once it has said something: with the answer, or at once if that takes longer.
    A line of more than `longest` bytes ends its connection.  Where else there is to listen, `listen` says.
    """

    def __init__(self, listening: socket.socket, take: Take, *, greeting: bytes, longest: int) -> None:
        self.take = take
        self.greeting = greeting
        self.longest = longest
        self.selector = selectors.DefaultSelector()
        self._doors: dict[socket.socket, Callable[[int], object]] = {}  # where who connects is let in, and by what
        self._connections: dict[Connection, socket.socket] = {}  # and the door it came in by
        self._full = False  # whether there was no room for another connection
        self.listen(listening, Connection)

    def listen(self, listening: socket.socket, connect: Connect, most: int | None = None) -> None:
        """Let in who connects there, by `connect(lines, connected)`.

        `most`: how many at once; for the next one, the first that is not `known` has to go, or else it has.
        """
        listening.setblocking(False)
        self._doors[listening] = partial(self._accept, listening, connect, most)
        if not self._full:
            self.selector.register(listening, selectors.EVENT_READ, self._doors[listening])

    def watch(self, file: socket.socket) -> None:
        """End a round also when there is something to read from `file`, which is thrown away."""
        self.selector.register(file, selectors.EVENT_READ, lambda events: file.recv(_CHUNK))

    def unwatch(self, file: socket.socket) -> None:
        """Take it out again."""
        self.selector.unregister(file)

    def fileno(self) -> int:
        """Return a descriptor that is ready when a round has something to do."""
        return self.selector.fileno()  # epoll and kqueue have one

    def round(self, timeout: float | None = 0) -> None:
        """Wait up to `timeout` seconds for something to do, and do it."""
        for key, events in self.selector.select(timeout):
            key.data(events)

    def stop_listening(self, *doors: socket.socket) -> None:
        """Let nobody connect there any more, by default nowhere; who has is answered still."""
        for door in doors or list(self._doors):
            if not self._full:
                self.selector.unregister(door)
            del self._doors[door]
            door.close()

    def shut(self, door: socket.socket) -> None:
        """Let nobody connect there any more, and hang up on who has, once what was taken from it is answered."""
        self.stop_listening(door)
        for connection in self._of(door):
            connection.leave()

    def close(self) -> None:
        """Hang up on everybody."""
        for connection in list(self._connections):
            connection.end()
        self.selector.close()

    def forsake(self) -> None:
        """Close the sockets, in a process that was forked from this one: those here stay as they are."""
        for door in self._doors:
            door.close()
        for connection in self._connections:
            connection.forsake()

    def _accept(self, door: socket.socket, connect: Connect, most: int | None, events: int) -> None:
        if self._full or door not in self._doors:  # another one's event in this round did that
            return
        try:
            connected, _ = door.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:  # no descriptors left: it would be told of again and again, see `look_for_room`
            for each in self._doors:
                self.selector.unregister(each)
            self._full = True
            return
        if most is not None and len(inside := self._of(door)) >= most:
            unknown = next((each for each in inside if not each.known), None)
            if unknown is None:
                connected.close()
                return
            unknown.end()
        connection = connect(self, connected)
        self._connections[connection] = door
        connection.ready(selectors.EVENT_READ)  # who connects has something to say

    def _of(self, door: socket.socket) -> list[Connection]:
        return [each for each, its in self._connections.items() if its is door]

    def forget(self, connection: Connection) -> None:
        """There is room for another one."""
        self._connections.pop(connection, None)
        self.look_for_room()

    def look_for_room(self) -> None:
        """Let somebody connect again if there was no room; to be called now and then, for others use descriptors too."""
        if self._full:
            self._full = False
            for door, accept in self._doors.items():
                self.selector.register(door, selectors.EVENT_READ, accept)


class Connection:
    """One client; its lines are taken one after the other, each when the one before is answered.

    `ended`: called when it goes while a line of it has no answer; `gone`: whether it has; `known`: whether it may say
    something at all, which is so where only its user can connect.  A subclass that carries lines
    in another wrapping has `_feed`, `_next` and `_send` of its own.
    """

    def __init__(self, lines: Lines, connected: socket.socket) -> None:
        connected.setblocking(False)
        self.ended: Callable[[], object] | None = None
        self._lines = lines
        self._socket = connected
        self.gone = False
        self.known = True
        self._greeting = lines.greeting
        self._received: list[bytes] = []  # of a line that has no end yet
        self._size = 0
        self._waiting: deque[bytes] = deque()
        self._busy = False
        self._unsent: deque[bytes | memoryview] = deque()
        self._blocked = False  # whether what is unsent has to wait
        self._leaving = False  # whether to hang up when all is sent
        lines.selector.register(connected, selectors.EVENT_READ, self.ready)

    def ready(self, events: int) -> None:
        """Read what there is, and write what could not be written."""
        if events & selectors.EVENT_WRITE and not self.gone:
            self._write()
        if events & selectors.EVENT_READ and not self.gone:
            self._read()

    def answer(self, data: bytes) -> None:
        """Send the answer to the line that was taken last, and go on with the next one."""
        self._busy = False
        self.ended = None
        self._send(data)
        self._go_on()

    def leave(self) -> None:
        """Hang up when all is answered and sent that was taken."""
        self._leaving = True
        if not self._busy and not self._unsent:
            self.end()

    def end(self) -> None:
        """Hang up."""
        if not self.gone:
            self.gone = True
            self._lines.selector.unregister(self._socket)
            self._socket.close()
            self._waiting.clear()
            self._lines.forget(self)
            if self.ended is not None:
                self.ended()

    def forsake(self) -> None:
        """Close the socket, and leave what is shared with another process alone."""
        self._socket.close()

    def _read(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:  # the client is gone, with answers unread
            data = b""
        if not data:
            self.end()
            return
        self._feed(data)
        self._go_on()

    def _feed(self, data: bytes) -> None:
        """Keep what has arrived, for `_next`."""
        end = data.find(b"\n") + 1
        if end == len(data) and not self._received:  # one line, as it comes from nearly everybody
            self._waiting.append(data)
        elif end:
            *lines, rest = b"".join([*self._received, data]).split(b"\n")
            self._received, self._size = [rest] if rest else [], len(rest)
            self._waiting.extend(lines)
        else:
            self._received.append(data)
            self._size += len(data)
            if self._size > self._lines.longest:
                self.end()

    def _next(self) -> bytes | None:
        """Return the next line, if it is there."""
        return self._waiting.popleft() if self._waiting else None

    def _go_on(self) -> None:
        while not self._busy and (line := self._next()) is not None:
            self._busy = True
            answer = self._lines.take(self, line)
            if answer is None:
                self._send(b"")
                return
            self._busy = False
            self._send(answer)

    def _send(self, data: bytes) -> None:
        """Send an answer; an empty one is on its way still."""
        if self._greeting:
            data, self._greeting = self._greeting + data, b""
        if data and not self.gone:
            self._unsent.append(data)
            if not self._blocked:
                self._write()

    def _write(self) -> None:
        try:
            while self._unsent:
                data = self._unsent[0]
                sent = self._socket.send(data)
                if sent == len(data):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = memoryview(data)[sent:]
        except BlockingIOError:  # the client reads slowly
            pass
        except OSError:
            self.end()
            return
        if self._leaving and not self._unsent:
            self.end()
        elif self._blocked != bool(self._unsent):
            self._blocked = bool(self._unsent)
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._blocked else 0)
            self._lines.selector.modify(self._socket, events, self.ready)
