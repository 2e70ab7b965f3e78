"""The adapter for the Claude Agent SDK: a runner's hooks as the option `hooks` of `ClaudeAgentOptions`.

    async with HookRunner(await discover_and_load_hooks(), cwd=".") as runner:
        options = ClaudeAgentOptions(hooks=hooks(runner))

The SDK runs Claude Code in a process of its own, and gets its events by the same protocol as a settings hook.  So the
bridge to Claude Code reads the events and writes the answers.  The hooks judge in this process, whatever settings Claude
Code reads.

Where it reads settings with our entries, the hooks that are installed there judge too, in the resident server.  Claude
Code asks both sides at the same time, so a rewrite of one side could lead past the gates of the other.  The rules:

1. The server is told of each call as one more link, so the installed hooks judge it once.  See `server.links`.
2. This side judges the call as they leave it.  If this side changes it, they judge the changed call again.
3. The stricter verdict is the answer.  A call that both sides change is denied, as Claude Code takes only one change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base.happenings import CallAsked, EventsReported, Happening
from agent_hooks.bridges.base.verdicts import UNJUDGED, UNREADABLE, Reply, Verdict
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.driver import BridgeUI, Bridging, wrong_matchers
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.errors import AgentHooksError, HookUsageError, describe, log, shown
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.control import place_of
from agent_hooks.server.linking import LinkVerdict, ask_server
from agent_hooks.values.answers import Block
from agent_hooks.values.events import SessionEvent
from agent_hooks.values.frozen import thaw

if TYPE_CHECKING:
    from claude_agent_sdk import HookMatcher
    from claude_agent_sdk.types import HookEvent

__all__ = ["hooks"]

INSTALL = "the extra `claude-sdk` is not installed: pip install 'agent-hooks-runtime[claude-sdk]'"
# This side's names at the server: for calls as they came, and for calls that it has changed.
_LINK, _LINK_AGAIN = "sdk", "sdk, changed"


def hooks(runner: HookRunner) -> dict[HookEvent, list[HookMatcher]]:
    """Return the option `hooks` of `ClaudeAgentOptions`, by which the hooks of a runner judge a client of the SDK.

    `runner`: an entered `HookRunner`.  It should judge one client at a time, because the hooks see one session.  Its UI
    is not asked: a question about a call goes to `can_use_tool`, and without that function the call is denied.

    The option has an entry for each event of Claude Code.  A failure, or no answer within the time of the entry, denies a
    call or a prompt.  Raises `HookUsageError` for any other object than a runner, and `AgentHooksError` without the SDK.
    """
    if not isinstance(runner, HookRunner):
        raise HookUsageError(f"hooks() wants a HookRunner, not {shown(runner)}: hooks(HookRunner(loaded))")
    try:
        # Imported here, because the SDK is an extra.
        from claude_agent_sdk import HookMatcher
    except ImportError:
        raise AgentHooksError(INSTALL) from None
    bridge = open_bridge("claude-code")
    assert isinstance(bridge, CommandBridge), "hooks of Claude Code are commands"
    for text in wrong_matchers(runner, bridge.tools):
        log().warning("%s", text)
    answering = _Answering(runner, bridge)
    found = {
        row.name: [
            HookMatcher(
                hooks=[cast("Any", answering.callback(row.name))],
                # The SDK's own default is 60 seconds, and hooks have as long as in a settings hook.
                timeout=row.timeout or bridge.timeout,
                # Without this, a call runs whose callback fails or does not answer.
                on_failure="block" if row.gate else None,
            )
        ]
        for row in bridge.describe()
    }
    # The type of the SDK lacks some events that Claude Code sends.
    return cast("dict[HookEvent, list[HookMatcher]]", found)


class _Answering:
    """Answers the events of a client, one after the other: `answering.callback(name)` is the callback of an event."""

    def __init__(self, runner: HookRunner, bridge: CommandBridge) -> None:
        self._bridge = bridge
        self._bridging = Bridging(runner, BridgeUI(), resident=True, divide=bridge.parts)
        # The client runs the tools of one message at the same time.
        self._lane = Lane()
        # The session whose start the hooks have had.
        self._session: str | None = None
        # Where the resident server for the client's project is.
        self._server = ""

    def callback(self, name: str) -> Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]:
        return partial(self._call, name)

    async def _call(self, name: str, payload: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        try:
            reply = await self._reply(self._bridge.decode_as(name, payload))
        except BridgeError as exc:
            reply = self._bridge.refuse(name, f"{UNREADABLE}: {exc}")
        # A gate is refused with the reason, and the log gets the traceback: no failure may pass for an approval.
        except Exception as exc:
            log().exception("failed at %s", name)
            reply = self._bridge.refuse(name, f"{UNJUDGED}: {describe(exc)}")
        answer: dict[str, Any] = json.loads(reply.stdout)
        return answer

    async def _reply(self, happening: Happening) -> Reply:
        await self._lane.enter()
        try:
            told = await self._start(happening)
            if isinstance(happening, CallAsked):
                verdict = await self._judge(happening)
            else:
                verdict = await self._bridging.answer(happening)
        finally:
            self._lane.leave()
        return self._bridge.encode(happening, replace(verdict, messages=(*told, *verdict.messages)))

    async def _start(self, happening: Happening) -> tuple[str, ...]:
        """Give the hooks the start of a new session, which the SDK does not report.  Return their texts for the user."""
        if happening.session_id == self._session or happening.starts:
            return ()
        self._session = happening.session_id
        self._server = place_of(happening.cwd or os.getcwd())
        file = happening.session_file
        start = EventsReported(
            name=happening.name,
            native=happening.native,
            session_id=happening.session_id,
            session_file=file,
            cwd=happening.cwd,
            events=(SessionEvent(reason="start", session_file=file),),
        )
        return (await self._bridging.answer(start)).messages

    async def _judge(self, call: CallAsked) -> Verdict:
        """Return the verdict of both sides on a call."""
        theirs = await self._ask(call.name, call.native, _LINK)
        if theirs.block is not None:
            return _with_texts(await self._bridging.refuse(call, Block(theirs.block)), theirs)
        left = call if theirs.input is None else self._changed(call, theirs.input)
        ours = _with_texts(await self._bridging.answer(left), theirs)
        if ours.block is not None:
            return ours
        if ours.input is None:
            return replace(ours, ask=_joined(theirs.ask, ours.ask), input=theirs.input)
        changed = self._changed(call, ours.input)
        again = await self._ask(call.name, changed.native, _LINK_AGAIN)
        block = again.block
        if block is None and (theirs.input is not None or again.input is not None):
            wanted = json.dumps(self._bridge.their_input(call, ours.input), ensure_ascii=False)
            reason = "hooks of this program and installed hooks changed this call"
            block = f"{reason}; call this instead: {call.native_name} {wanted}"
        if block is not None:
            return _with_texts(await self._bridging.refuse(changed, Block(block)), again)
        return _with_texts(replace(ours, ask=_joined(again.ask, ours.ask)), again)

    def _changed(self, call: CallAsked, input: Mapping[str, Any]) -> CallAsked:
        """Return a call with another input, which may have other parts."""
        changed = self._bridge.decode_as(call.name, self._bridge.with_input(call, thaw(input)))
        assert isinstance(changed, CallAsked), "it is the same event"
        return changed

    async def _ask(self, event: str, payload: Mapping[str, Any], link: str) -> LinkVerdict:
        """Return the verdict of the installed hooks on a call."""
        return await ask_server(self._server, self._bridge, payload, event, link)


def _joined(*questions: str | None) -> str | None:
    """Return the questions of both sides as one, `None` if there is none."""
    return "\n\n".join(dict.fromkeys(filter(None, questions))) or None


def _with_texts(verdict: Verdict, theirs: LinkVerdict) -> Verdict:
    """Return a verdict with the texts of the installed hooks, which no other link gives."""
    context, messages = (*theirs.context, *verdict.context), (*theirs.messages, *verdict.messages)
    return replace(verdict, context=context, messages=messages)
