"""Answer one event of another agent in this process: its payload on stdin, one JSON object on stdout.

Any failure here denies at a gate, because the agent lets a call through after exit code 1, a traceback or half a line.
Like `opening`, this module does not load click.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable

from msgspec.structs import replace

from agent_hooks.bridges import BRIDGES, guests, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.verdicts import SILENCE, UNJUDGED, UNREADABLE, Reply
from agent_hooks.bridges.base.words import BridgeError, parse_payload
from agent_hooks.cli.lifetime import DENIED, OK, leave, leave_soon, open_standard_streams
from agent_hooks.cli.opening import Opening
from agent_hooks.cli.streams import ReservedStdout, complain
from agent_hooks.concurrency.stepping import run
from agent_hooks.errors import describe
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.server.calls import Calls, Parents
from agent_hooks.server.client import ALONE
from agent_hooks.server.guests import judging_bridge
from agent_hooks.server.stub import LIMIT
from agent_hooks.trust.open_sessions import OpenSession

_CHUNK = 1024 * 1024


def answer_and_leave(agent: str, event: str) -> None:
    """Answer the event on stdin and end the process; return at once if there is no bridge for `agent`."""
    if agent not in BRIDGES:
        return
    open_standard_streams()
    leave(answer(open_bridge(agent), event))


def answer(bridge: Bridge, event: str | None) -> int:
    """Answer the event on stdin and return the exit code; `event` is its name, for a payload that cannot be read."""
    with ReservedStdout() as stdout:
        # An agent that we do not know may read the same settings.
        if not bridge.runs_here(os.environ) and not guests(bridge.name, os.environ):
            stdout.write(SILENCE.stdout)
            return OK
        answering = _Answering(bridge, event, stdout)
        try:
            # The objects made so far live until the end, so the garbage collector need not look at them again.
            run(answering.run(), ready=gc.freeze)
        # A hook raised SystemExit, the person pressed Ctrl-C, or this package has a bug: no call may pass.  The agent
        # gets a refusal, and the person a message.
        except BaseException as exc:
            answering.fail(exc)
        code = answering.exit_code
        leave_soon(code)
    return code


class _Answering:
    """One payload and its reply, which is printed as soon as it is known, because unloading hooks may take long."""

    def __init__(self, bridge: Bridge, event: str | None, stdout: ReservedStdout) -> None:
        self.exit_code = OK
        self._bridge = bridge
        self._event = event
        self._stdout = stdout
        self._replied = False

    async def run(self) -> None:
        """Read the payload, let the hooks answer, and print the reply."""
        is_alone = was_begun_alone()
        raw = _read_stdin()
        try:
            if raw is None:
                raise BridgeError(f"the payload is larger than {LIMIT // 1024 // 1024} MiB")
            given, self._event = self._event, self._event or self._bridge.name_in(raw)
            payload = parse_payload(raw)
            bridge = judging_bridge(self._bridge.name, os.environ, payload)
            if bridge is None:
                self._reply(SILENCE)
                return
            self._bridge = bridge
            # A sub-agent's event belongs to the session that it names.
            happening = Parents().resolve(bridge.name, bridge.decode_as(given, payload))
        except BridgeError as exc:
            self._reply(self._bridge.refuse(self._event, f"{UNREADABLE}: {exc}"))
            return
        self._event = happening.name
        process = os.environ.get(self._bridge.process_variable, "")
        sign = OpenSession(self._bridge.name, happening.session_id or "")
        sign.seen(int(process) if process.isdecimal() else None)
        calls = Calls(self._bridge)
        complete = calls.complete(happening)
        opened = await Opening(self._bridge, happening, os.environ, resident=False).open()
        # Objects of hooks, open files for example, must be collected at the end.
        if not opened.runner.hooks:
            gc.freeze()
        gc.enable()
        async with opened.runner:
            verdict = await calls.answer(complete, opened.bridging)
            if happening.starts:
                verdict = replace(verdict, messages=(*verdict.messages, *opened.news))
            if is_alone and calls.is_news("alone"):
                text = notice(self._bridge, happening.cwd or os.getcwd(), opened.runner.hooks)
                verdict = replace(verdict, messages=(*verdict.messages, text))
            self._reply(self._bridge.encode(happening, verdict))

    def fail(self, exc: BaseException) -> None:
        """Print a message, and refuse the event unless the reply has been printed."""
        text = describe(exc)
        complain(f"failed at {self._event or 'an event'}: {text}")
        if not self._replied:
            self._reply(self._bridge.refuse(self._event, f"{UNJUDGED}: {text}"))

    def _reply(self, reply: Reply) -> None:
        self._replied = True
        self._stdout.write(reply.stdout)
        self.exit_code = reply.exit_code
        if reply.stderr:
            complain(reply.stderr)
        # The agent may have read half an answer.
        if self._stdout.broken is not None:
            complain(f"the answer could not be written: {self._stdout.broken}")
            self.exit_code = DENIED


def _read_stdin() -> bytes | None:
    """Return the bytes on stdin, or `None` if they are too many, after some more were read."""
    data, size = bytearray(), 0
    while sys.stdin is not None and size <= 2 * LIMIT and (chunk := sys.stdin.buffer.read(_CHUNK)):
        size += len(chunk)
        if size <= LIMIT:
            data += chunk
    return bytes(data) if size <= LIMIT else None


_MOST = 5
"""The number of hooks that are named."""


def was_begun_alone() -> bool:
    """Return whether the installed client began this process because no server can be started.

    The client says so by a variable.  It is removed, so that the programs that hooks start do not get it.
    """
    return os.environ.pop(ALONE.decode(), None) is not None


def notice(bridge: Bridge, project: str, hooks: Iterable[LoadedHook]) -> str:
    """Return the message: the reason, the hooks that lose their state, and the remedy."""
    paths = [os.path.relpath(hook.path, project) for hook in hooks]
    named = ", ".join(paths[:_MOST]) + (f" and {len(paths) - _MOST} more" if len(paths) > _MOST else "")
    state = f", and these hooks keep no state between events: {named}" if paths else ""
    reason = last_words(project)
    return (
        f"agent_hooks: no resident server can be started ({reason}), so each event has a process of its own{state}; "
        f"to check: agent-hooks doctor {bridge.name}"
    )


def last_words(project: str) -> str:
    """Return the last line in the log of a project's server."""
    # Imported here, because few processes need it.
    from agent_hooks.server.control import place_of
    from agent_hooks.ui.harmless import harmless

    try:
        with open(f"{place_of(project)}.log", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    except OSError:
        lines = []
    return harmless(lines[-1][:200]) if lines else "it has left no log"
