"""The answers to the events of other agents: from a payload to the line with the reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.base.payloads import BridgeError
from agent_hooks.bridges.base.verdicts import SILENCE, UNJUDGED, UNREADABLE, Reply
from agent_hooks.errors import AgentHooksError, log
from agent_hooks.server.guests import judging_bridge
from agent_hooks.server.requests import ServerRequest, error_line
from agent_hooks.server.sessions import Sessions
from agent_hooks.server.tasks import failure_text, is_cancellation

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
        return bridge.encode(happening, await self._sessions.answer(bridge, happening, request.environment))

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
