"""A server of lines: clients connect to sockets, send lines, and get one answer for each line."""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Callable
from functools import partial

from agent_hooks.concurrency.numbers import high

_CHUNK = 1 << 16
"""The number of bytes to read at once."""

Respond = Callable[["Connection", bytes], bytes | None]
Connect = Callable[["LineServer", socket.socket], "Connection"]

# Theory of operation.
#
# 1. The server consists of a selector and some sockets.  `poll` waits until sockets are ready, and calls the callback of
#    each.  No callback waits for anything, so one slow client delays no other.
#
# 2. The server needs no event loop, because an event loop takes most of the time and memory of a small process.  A
#    program without one calls `poll` again and again.  A program with one watches `fileno()`, and calls `poll` when that
#    is ready.
#
# 3. A connection passes on one line at a time.  `respond` returns the answer, or `None` if the answer comes later, by
#    `Connection.answer`.  Until then the next lines of this client wait.  So each client gets its answers in the order of
#    its lines.
#
# 4. The greeting comes before the first answer, but not before the first line.  If the first answer comes later, the
#    greeting goes out at once.  So a client that has sent a line can distinguish a server that is busy with it from a
#    server that is stuck.
#
# 5. An answer that the client does not read stays in its connection.  The selector then also watches for room to write.
#
# 6. A line that is longer than `longest` closes its connection.  Lines that wait and answers that are not read have no
#    limit, because only programs of this user, or those with the token, can send a line that counts.
#
# 7. If the process has no file descriptor left, a client cannot be accepted, and its listener stays ready.  So the server
#    pauses: it takes all listeners out of the selector.  It resumes when a connection closes, and when `resume_accepting`
#    is called, because other parts of the process release descriptors too.
#
# 8. A connection closes in two ways.  `close` closes it now, and calls `on_close` if an answer was still to come.
#    `close_when_done` closes it after the answers to all lines that were passed on.


class LineServer:
    """Accepts clients and answers their lines: `while …: server.poll(timeout)`.

    `respond(connection, line)`: returns the answer, or `None` if `connection.answer` is called with it later.
    `greeting`: the first bytes that each client gets.
    `longest`: the length of the longest line, in bytes.
    """

    def __init__(self, listener: socket.socket, respond: Respond, *, greeting: bytes, longest: int) -> None:
        self.respond = respond
        self.greeting = greeting
        self.longest = longest
        self.selector = selectors.DefaultSelector()
        # Each listener with the callback that accepts a client from it, and each connection with its listener.
        self._listeners: dict[socket.socket, Callable[[int], object]] = {}
        self._connections: dict[Connection, socket.socket] = {}
        self._paused = False
        self.listen(listener, Connection)

    # ---- waiting

    def poll(self, timeout: float | None = 0) -> None:
        """Wait up to `timeout` seconds until sockets are ready, and serve those."""
        for key, events in self.selector.select(timeout):
            key.data(events)

    def fileno(self) -> int:
        """Return a descriptor that is ready whenever `poll` has work to do."""
        return self.selector.fileno()

    def watch(self, file: socket.socket) -> None:
        """Let `poll` also return when `file` has data, and discard the data."""
        self.selector.register(file, selectors.EVENT_READ, lambda events: file.recv(_CHUNK))

    def unwatch(self, file: socket.socket) -> None:
        """Watch `file` no longer."""
        self.selector.unregister(file)

    # ---- listeners

    def listen(self, listener: socket.socket, connect: Connect, most: int | None = None) -> None:
        """Accept clients from a listener; `connect(server, accepted)` returns the connection of one.

        `most`: the number of its connections at once.  The next client takes the place of the oldest one that is not
        trusted.  If all are trusted, the next client is turned away.
        """
        listener.setblocking(False)
        self._listeners[listener] = partial(self._accept, listener, connect, most)
        if not self._paused:
            self.selector.register(listener, selectors.EVENT_READ, self._listeners[listener])

    def stop_listening(self, *listeners: socket.socket) -> None:
        """Close these listeners, by default all of them; connected clients still get their answers."""
        for listener in listeners or list(self._listeners):
            if not self._paused:
                self.selector.unregister(listener)
            del self._listeners[listener]
            listener.close()

    def close_listener(self, listener: socket.socket) -> None:
        """Close a listener, and each connection from it after the answers to the lines that were passed on."""
        self.stop_listening(listener)
        for connection in self._accepted_from(listener):
            connection.close_when_done()

    def resume_accepting(self) -> None:
        """Accept clients again after a pause for want of descriptors; to be called now and then."""
        if self._paused:
            self._paused = False
            for listener, accept in self._listeners.items():
                self.selector.register(listener, selectors.EVENT_READ, accept)

    def _pause(self) -> None:
        for listener in self._listeners:
            self.selector.unregister(listener)
        self._paused = True

    def _accept(self, listener: socket.socket, connect: Connect, most: int | None, events: int) -> None:
        # An earlier callback of the same `poll` may have paused the server or closed the listener.
        if self._paused or listener not in self._listeners:
            return
        try:
            accepted, _ = listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            self._pause()
            return
        if most is not None and not self._make_room(listener, most):
            accepted.close()
            return
        # A hook that closes low numbers must not close a client of another session.
        family, kind, protocol = accepted.family, accepted.type, accepted.proto
        accepted = socket.socket(family, kind, protocol, fileno=high(accepted.detach()))
        connection = connect(self, accepted)
        self._connections[connection] = listener
        # A client sends its first line right after it has connected.
        connection.handle_events(selectors.EVENT_READ)

    def _make_room(self, listener: socket.socket, most: int) -> bool:
        """Return whether there is room for one more client, after the oldest untrusted one had to go if need be."""
        connections = self._accepted_from(listener)
        if len(connections) < most:
            return True
        untrusted = next((connection for connection in connections if not connection.trusted), None)
        if untrusted is not None:
            untrusted.close()
        return untrusted is not None

    def _accepted_from(self, listener: socket.socket) -> list[Connection]:
        return [connection for connection, source in self._connections.items() if source is listener]

    # ---- the end

    def forget(self, connection: Connection) -> None:
        """Remove a connection that has closed."""
        self._connections.pop(connection, None)
        self.resume_accepting()

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._connections):
            connection.close()
        self.selector.close()

    def close_after_fork(self) -> None:
        """Close the sockets in a forked child; the parent keeps its own, and the selector that both share."""
        for listener in self._listeners:
            listener.close()
        for connection in self._connections:
            connection.close_after_fork()


class Connection:
    """One client of a server.  A subclass for another protocol overrides `_receive`, `_next_line` and `_send`.

    `on_close`: a function to call if the client goes before its line is answered.
    `closed`: the connection has ended.
    `trusted`: the client may send lines; always true if only its own user can connect.
    """

    def __init__(self, server: LineServer, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        self.on_close: Callable[[], object] | None = None
        self.closed = False
        self.trusted = True
        self._server = server
        self._socket = accepted
        self._greeting = server.greeting
        # The beginning of a line whose end has not arrived.
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._lines: deque[bytes] = deque()
        # A line was passed on, and its answer is still to come.
        self._busy = False
        self._unsent: deque[bytes | memoryview] = deque()
        # The client does not read, so the selector also watches for room to write.
        self._blocked = False
        self._closing = False
        server.selector.register(accepted, selectors.EVENT_READ, self.handle_events)

    def handle_events(self, events: int) -> None:
        """Write and read as much as the socket allows."""
        if events & selectors.EVENT_WRITE and not self.closed:
            self._write()
        if events & selectors.EVENT_READ and not self.closed:
            self._read()

    def answer(self, data: bytes) -> None:
        """Send the answer that was to come later, and pass the next line on."""
        self._busy = False
        self.on_close = None
        self._send(data)
        self._pass_lines_on()

    def close_when_done(self) -> None:
        """Close the connection after the answers to all lines that were passed on."""
        self._closing = True
        if not self._busy and not self._unsent:
            self.close()

    def close(self) -> None:
        """Close the connection now."""
        if not self.closed:
            self.closed = True
            self._server.selector.unregister(self._socket)
            self._socket.close()
            self._lines.clear()
            self._server.forget(self)
            if self.on_close is not None:
                self.on_close()

    def close_after_fork(self) -> None:
        """Close the socket in a forked child."""
        self._socket.close()

    # ---- lines in

    def _read(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            # The client has gone without reading its answers.
            data = b""
        if data:
            self._receive(data)
            self._pass_lines_on()
        else:
            self.close()

    def _receive(self, data: bytes) -> None:
        """Split data into lines, for `_next_line`."""
        end = data.find(b"\n") + 1
        if end == len(data) and not self._partial:
            # Nearly every client sends exactly one line.
            self._lines.append(data)
        elif end:
            *lines, rest = b"".join([*self._partial, data]).split(b"\n")
            self._partial, self._partial_size = [rest] if rest else [], len(rest)
            self._lines.extend(lines)
        else:
            self._partial.append(data)
            self._partial_size += len(data)
            if self._partial_size > self._server.longest:
                self.close()

    def _next_line(self) -> bytes | None:
        """Return the next whole line, or `None`."""
        return self._lines.popleft() if self._lines else None

    def _pass_lines_on(self) -> None:
        """Pass on line after line, until an answer is to come later or no line is left."""
        while not self._busy and (line := self._next_line()) is not None:
            self._busy = True
            answer = self._server.respond(self, line)
            if answer is None:
                self._send(b"")
                return
            self._busy = False
            self._send(answer)

    # ---- answers out

    def _send(self, data: bytes) -> None:
        """Send an answer; an empty one stands for an answer that comes later, and only the greeting is sent."""
        if self._greeting:
            data, self._greeting = self._greeting + data, b""
        if data and not self.closed:
            self._unsent.append(data)
            if not self._blocked:
                self._write()

    def _write(self) -> None:
        try:
            self._write_unsent()
        except OSError:
            self.close()
            return
        if self._closing and not self._unsent:
            self.close()
        elif self._blocked != bool(self._unsent):
            self._blocked = bool(self._unsent)
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._blocked else 0)
            self._server.selector.modify(self._socket, events, self.handle_events)

    def _write_unsent(self) -> None:
        """Write until everything is sent or the client's buffer is full.  Raises `OSError` if the client has gone."""
        while self._unsent:
            data = self._unsent[0]
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                return
            if sent == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = memoryview(data)[sent:]
