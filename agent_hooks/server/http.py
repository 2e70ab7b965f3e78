"""Connections that carry the server's lines in HTTP: a client posts a payload, and the answer is the body."""

from __future__ import annotations

import hmac
import json
import socket

import h11

from agent_hooks.bridges.base.words import bare
from agent_hooks.server.lines import Connection, LineServer
from agent_hooks.server.stub import HELLO

_LARGEST_HEAD = 16384
"""The size of a request without its body, in bytes."""


class HttpConnection(Connection):
    """A client that posts payloads to `/agent-hooks/AGENT/EVENT`, one after the other.

    `token`: the token that `Authorization: Bearer` has to hold, because every user of this machine can connect.  A
    request with another token ends the connection at once, so that it cannot fill the memory or hold up other clients.
    """

    def __init__(self, server: LineServer, accepted: socket.socket, *, token: str) -> None:
        super().__init__(server, accepted)
        self.trusted = False
        self._greeting = b""
        self._authorization = f"Bearer {token}".encode()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEAD)
        self._request: h11.Request | None = None
        self._body: list[bytes] = []
        self._body_size = 0

    # ---- requests in

    def _receive(self, data: bytes) -> None:
        if not self._closing:
            self._http.receive_data(data)

    def _next_line(self) -> bytes | None:
        try:
            while not self.closed and not self._closing:
                event = self._http.next_event()
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._add_to_body(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    if line := self._line():
                        return line
                else:
                    # More data has to arrive, or the answer to this request has to go out first.
                    self._invite_body()
                    break
        except h11.RemoteProtocolError as exc:
            self._closing = True
            self._respond(exc.error_status_hint, error_body(str(exc)))
        return None

    def _begin(self, request: h11.Request) -> None:
        self._request, self._body, self._body_size = request, [], 0
        self._check(request)

    def _check(self, request: h11.Request) -> None:
        """Raise `h11.RemoteProtocolError` for a request of another program, before its body has arrived."""
        given = next((value for name, value in request.headers if name == b"authorization"), b"")
        if not hmac.compare_digest(given, self._authorization):
            text = "the token is not the one of this project's settings"
            raise h11.RemoteProtocolError(text, error_status_hint=401)
        self.trusted = True

    def _invite_body(self) -> None:
        """Send `100 Continue` to a client that waits for it before it sends the body."""
        if self._http.they_are_waiting_for_100_continue:
            super()._send(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))

    def _add_to_body(self, data: bytes) -> None:
        self._body_size += len(data)
        if self._body_size > self._server.longest:
            raise h11.RemoteProtocolError("the payload is too large", error_status_hint=413)
        self._body.append(data)

    def _line(self) -> bytes | None:
        """Return the request as a line of the server's protocol, or `None` if it was refused."""
        request = self._request
        assert request is not None, "a message ends after its request"
        target = request.target.decode("ascii").split("/")
        if request.method != b"POST":
            self._respond(405, error_body("events are posted"))
        elif target[:2] != ["", "agent-hooks"] or len(target) != 4:
            self._respond(404, error_body("events are posted to /agent-hooks/AGENT/EVENT"))
        else:
            head = {**json.loads(HELLO), "do": "tell", "agent": target[2], "event": target[3]}
            return b"[" + json.dumps(head).encode() + b", " + bare(b"".join(self._body)) + b"]\n"
        return None

    # ---- responses out

    def _send(self, data: bytes) -> None:
        """Send the answer to a line: `[exit code, {…}]` or `{"error": …}`."""
        if data:
            text = data[1:-2].partition(b", ")[2]
            succeeded = data.startswith(b"[0,")
            self._respond(200 if succeeded else 500, text + b"\n" if succeeded else data)

    def _respond(self, status: int, body: bytes) -> None:
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        if self._closing:
            headers.append(("connection", "close"))
        response = h11.Response(status_code=status, headers=headers)
        # The response to HEAD has no body.
        is_head = self._request is not None and self._request.method == b"HEAD"
        content = h11.Data(data=b"" if is_head else body)
        parts = [self._http.send(part) for part in (response, content, h11.EndOfMessage())]
        self._closing = self._closing or self._http.our_state is h11.MUST_CLOSE
        super()._send(b"".join(part for part in parts if part))
        self._request = None
        if not self._closing:
            self._http.start_next_cycle()


def error_body(text: str) -> bytes:
    """Return the body of a response that refuses a request."""
    return json.dumps({"error": text}).encode() + b"\n"
