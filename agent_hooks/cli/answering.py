"""One event of another agent, judged by a process of its own: its payload on stdin, one JSON object on stdout.

Whatever goes wrong here, a gate denies: an exit code of 1, a traceback or half a line would let the call through.
Above: bridge.  Below: opening, stdout; no click, as in `opening`.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from typing import Any

from msgspec.structs import replace

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge, BridgeError, Reply, read_payload
from agent_hooks.cli.lifetime import leave, leave_soon, open_standard_streams
from agent_hooks.cli.opening import Opening
from agent_hooks.cli.stderr import complain
from agent_hooks.cli.stdout import ReservedStdout
from agent_hooks.concurrency.stepping import run
from agent_hooks.errors import AgentHooksError, describe
from agent_hooks.server.stub import LIMIT
from agent_hooks.ui.harmless import harmless

_CHUNK = 1024 * 1024
DENIED = 2  # the exit code that every such agent takes for a denial


def answer_and_leave(agent: str, event: str) -> None:
    """Answer the event on stdin and end the process; return if there is no such agent."""
    if agent not in BRIDGES:
        return
    open_standard_streams()
    leave(answer(open_bridge(agent), event))


def answer(bridge: Bridge, event: str | None) -> int:
    """Answer the event on stdin, and return the exit code; `event` says what one that cannot be read was about."""
    with ReservedStdout() as stdout:
        if not bridge.runs_here(os.environ):  # another agent that reads the same settings, and has hooks of its own
            stdout.write("{}\n")
            return 0
        answering = _Answering(bridge, event, stdout)
        try:
            run(answering.run(), ready=gc.freeze)  # nothing so far has to be looked through, now or at the end
        except BaseException as exc:  # SystemExit of a hook, Ctrl-C, a bug: nothing may pass for a yes
            answering.fail(exc)
        code = answering.exit_code
        leave_soon(code)
    return code


class _Answering:
    """One payload and the one reply to it, which is printed as soon as it is known: unloading may take its time."""

    def __init__(self, bridge: Bridge, event: str | None, stdout: ReservedStdout) -> None:
        self.exit_code = 0
        self._bridge = bridge
        self._event = event
        self._stdout = stdout
        self._replied = False

    async def run(self) -> None:
        """Read, answer, print."""
        raw = _read_stdin()
        try:
            if raw is None:
                raise BridgeError(f"the payload is larger than {LIMIT // 1024 // 1024} MiB")
            self._event = self._event or _name_in(raw)
            happening = read_payload(self._bridge, raw)
        except BridgeError as exc:
            self._reply(self._bridge.refuse(self._event, f"agent-hooks could not read the event: {exc}"))
            return
        self._event = happening.name
        opened = await Opening(self._bridge, happening, os.environ, resident=False).open()
        if not opened.runner.hooks:  # what hooks leave behind is collected at the end, open files of theirs for example
            gc.freeze()
        gc.enable()
        async with opened.runner:
            verdict = await opened.bridging.answer(happening)
            if happening.name == "SessionStart":
                verdict = replace(verdict, messages=(*verdict.messages, *opened.news))
            self._reply(self._bridge.encode(happening, verdict))

    def fail(self, exc: BaseException) -> None:
        """Reply to what nobody foresaw, unless the reply is out; say so in a line."""
        text = str(exc) if isinstance(exc, AgentHooksError) else describe(exc)
        complain(harmless(f"failed at {self._event or 'an event'}: {text}"))
        if not self._replied:
            self._reply(self._bridge.refuse(self._event, f"agent-hooks could not judge this: {text}"))

    def _reply(self, reply: Reply) -> None:
        self._replied = True
        self._stdout.write(reply.stdout)
        self.exit_code = reply.exit_code
        if reply.stderr:
            complain(reply.stderr)
        if self._stdout.broken is not None:  # what was printed may be half of it
            complain(f"the answer could not be written: {self._stdout.broken}")
            self.exit_code = DENIED


def _read_stdin() -> bytes | None:
    """Return what is on stdin, `None` when it is too much; read to its end, for the writer must not be cut off."""
    data, size = bytearray(), 0
    while sys.stdin is not None and (chunk := sys.stdin.buffer.read(_CHUNK)):
        size += len(chunk)
        if size <= LIMIT:
            data += chunk
    return bytes(data) if size <= LIMIT else None


def _name_in(raw: bytes) -> Any:
    """Return the event's name that a broken payload still shows."""
    found = re.search(rb'"hook_event_name"\s*:\s*"(\w+)"', raw)
    return found[1].decode() if found else None
