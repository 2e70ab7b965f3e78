"""The requests of the server's protocol: one JSON array a line, which holds the request and a payload.

    → [{"nonce": "…", "agent_hooks": "0.1.0", "protocol": 3, "do": "answer", "agent": "claude-code", "event": "…",
        "environment": {…}}, {…}]
    ← {"agent_hooks": "0.1.0", "protocol": 3}
    ← SIGNATURE [0, {…}]
    → [{…, "do": "tell", "agent": "claude-code", "event": "…"}, {…}]
    → [{"do": "status"}, null]
    ← {"pid": …, "project": "…", …}

The server's first line is its version.  The answer to an event is the exit code and the JSON object to print.  A request
that begins with a nonce gets a signed answer: the HMAC-SHA-256 of the request's digest and the answer, by the key in the
agent home.  So a client knows its server, sends no secret, and needs no further round trip.  `tell` is
an event that was posted by HTTP, see `http`.  `status`, `stop` and `look`, which refreshes the ports, are answered with
the server's status.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks import __version__
from agent_hooks.server.stub import PROTOCOL


class ServerRequest(Struct):
    """One request.  A request for an answer to an event must be of the server's version."""

    do: str
    agent_hooks: str = ""
    protocol: int = 0
    agent: str = ""
    event: str = ""
    environment: dict[str, str] = {}

    @property
    def is_current(self) -> bool:
        """Whether the client has the server's version."""
        return (self.agent_hooks, self.protocol) == (__version__, PROTOCOL)


_decode = msgspec.json.Decoder(tuple[ServerRequest, Any]).decode


def read_request(line: bytes) -> tuple[ServerRequest, Any]:
    """Return a request and its payload.  Raises `ValueError`, `TypeError` or `RecursionError` for any other line."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeError):
        # This decoder accepts half of a surrogate pair.
        head, payload = json.loads(line)
        return msgspec.convert(head, ServerRequest), payload


def to_line(value: object) -> bytes:
    """Return a value as a line of JSON."""
    return json.dumps(value).encode() + b"\n"


def error_line(text: str) -> bytes:
    """Return the answer to a request that failed; the client then refuses a gate with this text."""
    return to_line({"error": text})
