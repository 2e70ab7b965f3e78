"""The requests of the server's protocol, and the answers to the events of other agents.

A request is a line with a JSON array, which holds the request and a payload.

    → [{"nonce": "…", "agent_hooks": "0.1.0", "protocol": 3, "do": "answer", "agent": "claude-code", "event": "…",
        "environment": {…}}, {…}]
    ← {"agent_hooks": "0.1.0", "protocol": 3}
    ← SIGNATURE [0, {…}]
    → [{…, "do": "tell", "agent": "claude-code", "event": "…"}, {…}]
    → [{…, "do": "link", "agent": "claude-code", "event": "…"}, {…}]
    ← SIGNATURE [0, {"block": "…"}]
    → [{"do": "status"}, null]
    ← {"pid": …, "project": "…", …}

The server's first line is its version.  The answer to an event is the exit code and the JSON object to print.  A request
that begins with a nonce gets a signed answer: the HMAC-SHA-256 of the request's digest and the answer, by the key in the
agent home.  So a client knows its server, sends no secret, and needs no further round trip.  `tell` is
an event that was posted by HTTP, see `http`.  `link` is a call that another judge of the session reports, see `linking`.
`status` and `look`, which refreshes the ports, are answered with the
server's status.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks import __version__
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import CallAsked, Happening
from agent_hooks.bridges.base.verdicts import SILENCE, UNJUDGED, UNREADABLE, Reply
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.errors import AgentHooksError, log
from agent_hooks.server.guests import judging_bridge
from agent_hooks.server.linking import reply_to_link
from agent_hooks.server.sessions import Sessions
from agent_hooks.server.stub import PROTOCOL
from agent_hooks.server.tasks import failure_text, is_cancellation


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


_SILENCE_LINE = b"[0, {}]\n"
"""The most frequent answer."""


class Events:
    """Answers events by the hooks of their sessions; `count` is the number of events so far."""

    def __init__(self, sessions: Sessions) -> None:
        self.count = 0
        self._sessions = sessions

    async def answer(self, request: ServerRequest, payload: Any, is_wanted: Callable[[], bool] = lambda: True) -> bytes:
        """Return the line that answers an event: `[exit code, {…}]`.

        `is_wanted`: tells whether the client still waits.  If so, a cancellation of this task came from a hook.
        """
        self.count += 1
        try:
            bridge = open_bridge(request.agent)
        except KeyError:
            return error_line(f"no such agent: {request.agent}")
        event: str | None = request.event or None
        try:
            found = judging_bridge(request.agent, request.environment, payload)
            if found is None:
                return _SILENCE_LINE
            bridge = found
            happening = bridge.decode_as(event, payload)
            event = happening.name
            reply = await self._reply(bridge, happening, request)
        # The cause may be a wrong payload, a hook that raises SystemExit, or a bug of ours.  A gate is refused with the
        # reason, and the log gets the traceback: no failure may pass for an approval.
        except BaseException as exc:
            if isinstance(exc, GeneratorExit) or (is_cancellation(exc) and not is_wanted()):
                raise
            reply = bridge.refuse(event, _failure(exc, event))
        return _line_of(reply)

    async def _reply(self, bridge: Bridge, happening: Happening, request: ServerRequest) -> Reply:
        if request.do == "tell":
            return await self._reply_to_posted(bridge, happening)
        if request.do == "link":
            return await self._reply_to_link(bridge, happening)
        return bridge.encode(happening, await self._sessions.answer(bridge, happening, request.environment))

    async def _reply_to_link(self, bridge: Bridge, happening: Happening) -> Reply:
        """Return the verdict on a call whose session is open here, and no opinion on any other call."""
        environment = self._sessions.environment(bridge, happening)
        if environment is None or not isinstance(happening, CallAsked):
            return SILENCE
        return reply_to_link(await self._sessions.answer(bridge, happening, environment))

    async def _reply_to_posted(self, bridge: Bridge, happening: Happening) -> Reply:
        """Return the reply to an event that came by HTTP, which has no environment.

        It must be an event that decides nothing, of a session that a command has opened; it gets that one's environment.
        """
        environment = self._sessions.environment(bridge, happening)
        if not bridge.row(happening.name).decides_nothing:
            reason = f"{happening.name} is not for HTTP: to mend it: agent-hooks install {bridge.name} --http"
        elif environment is None:
            reason = f"no command has opened session {happening.session_id} yet"
        else:
            return bridge.encode(happening, await self._sessions.answer(bridge, happening, environment))
        log().warning("%s was dropped: %s", happening.name, reason)
        return bridge.refuse(happening.name, f"agent-hooks dropped this event: {reason}")


def _failure(exc: BaseException, event: str | None) -> str:
    """Return the reason of a refusal; log the traceback of any failure but a wrong payload."""
    if isinstance(exc, BridgeError):
        return f"{UNREADABLE}: {exc}"
    text = str(exc) if isinstance(exc, AgentHooksError) else failure_text(exc)
    log().exception("failed at %s", event or "an event")
    return f"{UNJUDGED}: {text}"


def _line_of(reply: Reply) -> bytes:
    # `Reply.of` prints one line, so this is one line too.
    return _SILENCE_LINE if reply is SILENCE else f"[{reply.exit_code}, {reply.stdout.strip()}]\n".encode()
