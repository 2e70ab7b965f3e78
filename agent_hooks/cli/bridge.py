"""`agent-hooks bridge`: what another agent runs at each of its events; a payload on stdin, one JSON object on stdout.

Whatever goes wrong here, a gate denies: an exit code of 1, a traceback or half a line would let the call through.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
import click
from msgspec.structs import replace

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge, BridgeError, Happening, Reply, read_payload
from agent_hooks.bridging import BridgeUI, Bridging, in_our_words, listened_to, wrong_matchers
from agent_hooks.cli.common import agent_guards, leave_soon, set_up, sources_at, sources_of
from agent_hooks.cli.installation import missing, places, targets
from agent_hooks.cli.main import complain
from agent_hooks.cli.stdout import ReservedStdout
from agent_hooks.errors import AgentHooksError, HookError, describe, log
from agent_hooks.guards import BUILTIN
from agent_hooks.guards.config import read_sections
from agent_hooks.harmless import harmless
from agent_hooks.runner import HookRunner
from agent_hooks.server.client import directory
from agent_hooks.server.sessions import Opened
from agent_hooks.server.stub import LIMIT, command_of

_CHUNK = 1024 * 1024
DENIED = 2  # the exit code that every such agent takes for a denial


@click.command("bridge")
@click.argument("agent", type=click.Choice(list(BRIDGES)))
@click.argument("event", required=False)
@click.option("--resident", is_flag=True, help="Let the resident server answer, which keeps the hooks' state.")
@click.pass_context
def command(ctx: click.Context, agent: str, event: str | None, resident: bool) -> None:
    """Answer one EVENT of another AGENT: its payload on stdin, one JSON object on stdout.

    `agent-hooks install` makes the agent run this. EVENT says what a payload that cannot be read was about.
    """
    bridge = open_bridge(agent)
    if not bridge.runs_here(os.environ):  # another agent that reads the same settings, and has hooks of its own
        click.echo("{}")
        return
    if resident:
        with suppress(OSError):  # where the file cannot be written, this process judges
            run = [*command_of(bridge), *([event] if event else [])]
            os.execv(run[0], run)  # noqa: S606  # there is nothing for a shell in it
    with ReservedStdout() as stdout:
        answering = _Answering(bridge, event, stdout)
        try:
            anyio.run(answering.run)
        except BaseException as exc:  # SystemExit of a hook, Ctrl-C, a bug: nothing may pass for a yes
            answering.fail(exc)
        code = answering.exit_code
        leave_soon(code)
    ctx.exit(code)


async def open_session(
    bridge: Bridge, happening: Happening, environment: Mapping[str, str], *, resident: bool = True
) -> Opened:
    """Load the hooks of the project that another agent was started in; raises `SettingsError`."""
    project = environment.get(bridge.project_variable) or happening.cwd or os.getcwd()
    before = sources_at(os.path.abspath(project))
    setup = await set_up(project, ())
    attended = bridge.is_attended(environment)
    ui = BridgeUI(attended=attended)
    # the agent must not end what judges it: neither the entries nor the process
    own = [*(target.path for target in targets(bridge, setup.cwd, environment).values()), directory()]
    steps, allowed = in_our_words(bridge, setup.transformers.configured, setup.transformers.auto_allow)
    runner = HookRunner(
        setup.loaded,
        cwd=happening.cwd or setup.cwd,
        timeout=setup.settings.hook_timeout,
        tool_call_timeout=setup.settings.tool_call_timeout,
        ui=ui,
        mode="bridge",
        session_file=happening.session_file,
        session_id=happening.session_id,
        guards=agent_guards(read_sections(setup.settings.guards, tuple(BUILTIN)), setup.cwd, own),
        transformers=steps,
        redactor=setup.redactor,
    )
    runner.on_error(_log if resident else _complain_of)
    bridging = Bridging(runner, ui, auto_allow=allowed, attended=attended, resident=resident)
    for failure in setup.errors:
        complain(harmless(str(failure)))
    # a hook that was dropped in later must not fail to fire in silence
    listened = listened_to(setup.loaded.hooks, setup.transformers.configured, setup.redactor)
    vain = missing(bridge, places(bridge, setup.cwd, environment), listened)
    news = [*map(str, setup.errors), *wrong_matchers(runner, bridge.tools), *vain]
    return Opened(runner, bridging, sources_of(setup).since(before), tuple(f"agent_hooks: {text}" for text in news))


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
        opened = await open_session(self._bridge, happening, os.environ, resident=False)
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


def _log(error: HookError) -> None:
    log().error("hook error: %s (%s)\n%s", harmless(str(error)), error.outcome, harmless(error.traceback))


def _complain_of(error: HookError) -> None:
    complain(harmless(f"hook error: {error} ({error.outcome})"))


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
