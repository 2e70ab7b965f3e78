"""The port on which the mod of Claude Code asks: see `plugins/claude-code`.

A mod speaks HTTP over TCP, and each program of this machine can connect to a port, or listen on it while no server runs.
So both sides show that they know the key of the mods, and neither sends it:

- A request is a line of the server's protocol that begins with a nonce.  Its header `Authorization` holds a signature of
  its digest.  A request whose nonce was used before is refused.
- The body of the response is the signed answer, as on the socket.

A browser sends `Origin`, and a forwarded port has another `Host`.  Both are refused.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable
from functools import partial
from time import monotonic

import h11

from agent_hooks.bridges.base.installation import LOOPBACK
from agent_hooks.server.client import NONCE, digest_of, signature
from agent_hooks.server.http import HttpConnection
from agent_hooks.server.lines import LineServer

TARGET = b"/agent-hooks/seat"
SCHEME = b"agent-hooks "
"""The word before the signature in `Authorization`."""
REQUEST = b"request "
"""The beginning of the text that a request signs.  Its digest comes after it."""
_MOST = 16
# Seconds for which the port is open before the first session has begun.
_PATIENCE = 60.0
# The number of nonces that are remembered.  A nonce is used once, and the port closes with the last session.
_MOST_NONCES = 65536
_NONCE = slice(len(NONCE), len(NONCE) + 32)


class Seat:
    """The port of a server: `open()` returns its number, and `refresh(is_used)` closes it after the last session.

    `key`: the key of the mods.
    """

    def __init__(self, server: LineServer, key: bytes) -> None:
        self.key = key
        self._server = server
        self._listener: socket.socket | None = None
        self._asked = 0.0
        self._nonces: dict[bytes, None] = {}

    @property
    def number(self) -> int:
        """The number of the port, 0 while it is closed."""
        return 0 if self._listener is None else self._listener.getsockname()[1]

    def open(self) -> int:
        """Open the port unless it is open, and return its number.  Raises `OSError`."""
        self._asked = monotonic()
        if self._listener is None:
            self._listener = socket.create_server((LOOPBACK, 0), backlog=_MOST)
            # The accepted connections inherit this option.
            self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connect = partial(SeatConnection, key=self.key, port=self.number, is_new=self._is_new)
            self._server.listen(self._listener, connect, most=_MOST)
        return self.number

    def refresh(self, *, is_used: bool) -> None:
        """Close the port if no session is open and none was about to begin."""
        if not is_used and monotonic() - self._asked > _PATIENCE:
            self.close()

    def close(self) -> None:
        """Close the port, if it is open."""
        if self._listener is not None:
            self._server.close_listener(self._listener)
            self._listener = None
            self._nonces.clear()

    def _is_new(self, nonce: bytes) -> bool:
        """Return whether a nonce was not used before, and remember it."""
        if nonce in self._nonces:
            return False
        self._nonces[nonce] = None
        while len(self._nonces) > _MOST_NONCES:
            del self._nonces[next(iter(self._nonces))]
        return True


class SeatConnection(HttpConnection):
    """A mod that posts signed lines, one after the other.

    `key`: the key of the mods; `port`: the port's number; `is_new`: whether a nonce was not used before.
    """

    def __init__(
        self, server: LineServer, accepted: socket.socket, *, key: bytes, port: int, is_new: Callable[[bytes], bool]
    ) -> None:
        super().__init__(server, accepted, token="")
        self._key = key
        self._host = f"{LOOPBACK}:{port}".encode()
        self._is_new = is_new
        self._signature = b""
        self._digest = b""

    def _check(self, request: h11.Request) -> None:
        headers = dict(request.headers)
        if b"origin" in headers or headers.get(b"host") != self._host:
            raise h11.RemoteProtocolError("a request of another program", error_status_hint=403)
        if (request.method, request.target) != (b"POST", TARGET):
            raise h11.RemoteProtocolError("lines are posted to " + TARGET.decode(), error_status_hint=404)
        self._signature = headers.get(b"authorization", b"").removeprefix(SCHEME)

    def _line(self) -> bytes | None:
        line = b"".join(self._body)
        self._digest = digest_of(line)
        expected = signature(self._key, REQUEST, self._digest)
        is_one = line.endswith(b"]\n") and line.count(b"\n") == 1 and line.startswith(NONCE.encode())
        if not hmac.compare_digest(expected, self._signature) or not is_one:
            raise h11.RemoteProtocolError("the signature is not made with the key of the mods", error_status_hint=401)
        self.trusted = True
        if not self._is_new(line[_NONCE]):
            raise h11.RemoteProtocolError("the request was sent before", error_status_hint=409)
        return line

    def _send(self, data: bytes) -> None:
        if data:
            # The server has signed with its own key, which a mod does not have.
            answer = data.partition(b" ")[2]
            self._respond(200, signature(self._key, self._digest, answer) + b" " + answer)
