"""Connections that carry the server's lines in HTTP: a payload is posted, the answer is the body that comes back.

Above: ports.  Below: lines, stub; h11 reads and writes HTTP.
"""

from __future__ import annotations

import hmac
import json
import socket

import h11

from agent_hooks.server.lines import Connection, Lines
from agent_hooks.server.stub import HELLO

_HEAD = 16384  # bytes of a request without its body


class HttpConnection(Connection):
    """One client that posts the payloads of events to `/agent-hooks/AGENT/EVENT`, one after the other.

    `token`: what its `Authorization: Bearer` has to say, for any user of this machine can connect.  Who says something
    else is hung up on at once, or could fill the memory and keep others waiting.
    """

    def __init__(self, lines: Lines, connected: socket.socket, *, token: str) -> None:
        super().__init__(lines, connected)
        self.known = False
        self._greeting = b""
        self._authorization = f"Bearer {token}".encode()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        self._request: h11.Request | None = None

    def _feed(self, data: bytes) -> None:
        if not self._leaving:
            self._http.receive_data(data)

    def _next(self) -> bytes | None:
        try:
            while not self.gone and not self._leaving:
                event = self._http.next_event()
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._keep(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    if line := self._line():
                        return line
                else:  # there is no more, or it has to wait
                    self._encourage()
                    break
        except h11.RemoteProtocolError as exc:
            self._leaving = True
            self._respond(exc.error_status_hint, _error(str(exc)))
        return None

    def _begin(self, request: h11.Request) -> None:
        self._request, self._received, self._size = request, [], 0
        given = next((value for name, value in request.headers if name == b"authorization"), b"")
        if not hmac.compare_digest(given, self._authorization):
            text = "the token is not the one of this project's settings"
            raise h11.RemoteProtocolError(text, error_status_hint=401)
        self.known = True

    def _encourage(self) -> None:
        """Tell a client that asks first whether its body is wanted that it is."""
        if self._http.they_are_waiting_for_100_continue:
            super()._send(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._lines.longest:
            raise h11.RemoteProtocolError("the payload is too large", error_status_hint=413)
        self._received.append(data)

    def _line(self) -> bytes | None:
        """Return what was asked as a line of the server; `None` if it was refused."""
        request = self._request
        assert request is not None, "what ends has begun"
        target = request.target.decode("ascii").split("/")
        if request.method != b"POST":
            self._respond(405, _error("events are posted"))
        elif target[:2] != ["", "agent-hooks"] or len(target) != 4:
            self._respond(404, _error("events are posted to /agent-hooks/AGENT/EVENT"))
        else:
            head = {**json.loads(HELLO), "do": "tell", "agent": target[2], "event": target[3]}
            return b"[" + json.dumps(head).encode() + b", " + b"".join(self._received) + b"]\n"
        return None

    def _send(self, data: bytes) -> None:
        """Send the answer to a line: `[exit code, {…}]` or `{"error": …}`."""
        if data:
            text = data[1:-2].partition(b", ")[2]
            whole = data.startswith(b"[0,")
            self._respond(200 if whole else 500, text + b"\n" if whole else data)

    def _respond(self, status: int, body: bytes) -> None:
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        if self._leaving:
            headers.append(("connection", "close"))
        response = h11.Response(status_code=status, headers=headers)
        for_head = self._request is not None and self._request.method == b"HEAD"  # which is answered without a body
        content = h11.Data(data=b"" if for_head else body)
        parts = [self._http.send(part) for part in (response, content, h11.EndOfMessage())]
        self._leaving = self._leaving or self._http.our_state is h11.MUST_CLOSE
        super()._send(b"".join(part for part in parts if part))
        self._request = None
        if not self._leaving:
            self._http.start_next_cycle()


def _error(text: str) -> bytes:
    return json.dumps({"error": text}).encode() + b"\n"
