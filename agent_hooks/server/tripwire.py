"""The tripwire: the check that each result of another agent's tool belongs to a judged call.

A tool's result shows that the tool ran.  If no gate was asked about that call, then something has switched the gate off,
while other events still arrive.  The rules:

1. A call is remembered as soon as it is judged, before the answer leaves: in memory, and in the session's journal, which
   outlives the server.
2. A result whose call is not remembered is an alarm, if a gate listens to such calls and the session's start was seen.
   Then the session's calls, questions and prompts are blocked, and the person gets the reason.
3. If the start was not seen, the call may have begun before our entries were there, or before the journal was lost.  Then
   the person is warned once, and nothing is blocked.
4. A call without an id is remembered by its tool and input.  A result that fits no such call, but whose tool has a call
   without a result, is that call's result: the agent or another hook may have changed the input.
5. A person lifts the alarm by `agent-hooks doctor --clear-alarm`, or begins another session.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import CallEnded
from agent_hooks.bridges.driver import Bridging
from agent_hooks.errors import log
from agent_hooks.server.journal import Alarm
from agent_hooks.server.memory import Memory, short_id
from agent_hooks.values.answers import Block

CLEAR = "agent-hooks doctor --clear-alarm"
"""The command by which a person lifts an alarm."""


class Tripwire:
    """The tripwire of one session: `warning(call, bridging)` at each result, and `block()` before each call and prompt.

    `knows`: tells whether another session of an agent has judged the call with an id.
    """

    def __init__(self, bridge: Bridge, memory: Memory, knows: Callable[[str, str], bool]) -> None:
        self._bridge = bridge
        self._memory = memory
        self._knows = knows

    def warning(self, call: CallEnded, bridging: Bridging) -> str | None:
        """Return the text for the person if a result has no judged call, after the alarm is raised."""
        return self._trip(call) if self._is_alarming(call, bridging) else None

    def block(self) -> Block | None:
        """Return the block of all calls, questions and prompts while the session's alarm stands."""
        alarm = self._memory.alarm()
        return None if alarm is None else _block(alarm)

    def raise_alarm(self, reason: str) -> None:
        """Raise the alarm for another reason than a result, unless the session has no journal."""
        if self._memory.session is not None:
            self._raise(Alarm(self._bridge.name, self._memory.session, os.getcwd(), "", time.time(), reason))

    def _is_alarming(self, call: CallEnded, bridging: Bridging) -> bool:
        """Return whether a tool ran without the judgement of a gate that listens to it."""
        if self._memory.has_judged(short_id(call.tool_call_id)) or call.native_name in self._bridge.unasked:
            return False
        return bridging.has_gates(call) and not self._knows(self._bridge.name, short_id(call.tool_call_id))

    def _trip(self, call: CallEnded) -> str | None:
        """Raise the alarm, or warn once if the session's start was not seen; return the text for the person."""
        agent, tool = self._bridge.name, call.native_name
        if not self._memory.saw_start():
            if not self._memory.is_news("unjudged"):
                return None
            text = (
                f"agent_hooks: {tool} ran without having been judged; it may have begun before the hooks of this session "
                f"were there, so nothing is blocked; to check: agent-hooks doctor {agent}"
            )
            log().warning("session %s: %s", self._memory.session, text)
            return text
        block = self._raise(Alarm(agent, self._memory.session or "", call.cwd or os.getcwd(), tool, time.time()))
        return f"agent_hooks: {block.reason}; {block.remedy}"

    def _raise(self, alarm: Alarm) -> Block:
        try:
            self._memory.raise_alarm(alarm)
        except OSError as exc:
            log().error("the alarm could not be written, and ends with this process: %s", exc)
        block = _block(alarm)
        log().error("session %s: %s", self._memory.session, block.reason)
        return block


def _block(alarm: Alarm) -> Block:
    text = (
        f"the tripwire has stopped this session: {alarm.sign}, so the gate of "
        f"{alarm.agent}'s calls was switched off or passed by"
    )
    remedy = f"to check: agent-hooks doctor {alarm.agent}; to go on: {CLEAR}, or begin another session"
    return Block(text, "tripwire", "guard", remedy=remedy)
