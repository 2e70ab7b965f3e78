"""The calls and prompts of one session of another agent: the facts that its events lack.

Agents leave out different facts.  Before the hooks get a happening, this module

- gives a call an id if the agent sends none, and its result the same id;
- takes the agent's `session` start away if the hooks have had one already;
- takes a prompt away that no person has written: the text with which a hook kept the agent going, which some agents
  report as a prompt, and an empty prompt in the middle of a run;
- counts how often hooks kept the agent going, if the agent does not report it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import (
    CallAsked,
    CallEnded,
    EventsReported,
    Happening,
    PermissionAsked,
    PromptGiven,
)
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.driver import Bridging
from agent_hooks.server.links import Links
from agent_hooks.server.memory import Memory, key_of, short_id
from agent_hooks.server.tripwire import Tripwire
from agent_hooks.server.witness import Witness
from agent_hooks.values.events import AgentEnd, SessionEvent, SessionReason

MOST_PARENTS = 4096
"""The number of sub-agents that are known at once."""


class Parents:
    """The sub-agents of all sessions: `happening = parents.resolve(agent, happening)`.

    An agent reports the parent of a sub-agent in one of two ways.  Either an event of the parent names the sub-agent,
    whose id then stands in the place of the session in the sub-agent's own events; or an event of the sub-agent's session
    names the session of the parent.
    """

    def __init__(self) -> None:
        # The session of the parent, by the agent's name and the id of the sub-agent.
        self._parents: dict[tuple[str, str], str] = {}

    def resolve(self, agent: str, happening: Happening) -> Happening:
        """Return a happening of a sub-agent as one of its parent's session; any other one as it is."""
        session = happening.session_id
        if session is None:
            return happening
        if happening.agent_id not in ("main", session):
            self._learn((agent, happening.agent_id), session)
        if happening.parent_session not in (None, session):
            self._learn((agent, session), str(happening.parent_session))
        if (agent, session) not in self._parents:
            return happening
        own, seen = session, {session}
        while (above := self._parents.get((agent, session))) is not None and above not in seen:
            seen.add(above)
            session = above
        agent_id = own if happening.agent_id == "main" else happening.agent_id
        found = replace(happening, session_id=session, agent_id=agent_id, starts=False, leaves=False)
        if isinstance(found, EventsReported):
            # The session of the parent goes on when the sub-agent starts and ends.
            return replace(found, events=tuple(each for each in found.events if not isinstance(each, SessionEvent)))
        return found

    def _learn(self, child: tuple[str, str], session: str) -> None:
        if child not in self._parents:
            self._parents[child] = session
            while len(self._parents) > MOST_PARENTS:
                del self._parents[next(iter(self._parents))]


_MOST_BLOCKED = 100
OWN = "agent-hooks-"
"""The beginning of the ids of calls for which the agent sends none."""


class Calls:
    """The calls and prompts of one session: `happening = calls.complete(happening)` before the hooks get it, and
    `verdict = await calls.answer(happening, bridging)`.

    `knows`: tells whether another session of an agent has judged the call with an id, because an agent may change
    sessions during a call.
    """

    def __init__(self, bridge: Bridge, knows: Callable[[str, str], bool] = lambda agent, identity: False) -> None:
        self._bridge = bridge
        self._memory = Memory(bridge.name)
        self._tripwire = Tripwire(bridge, self._memory, knows)
        self._links = Links()
        self._witness = Witness(bridge) if bridge.mod else None
        # The ids of the last calls that were blocked.
        self._blocked: dict[str, None] = {}
        # The text with which hooks kept an agent going the last time, by agent.
        self._texts: dict[str, str] = {}
        # The agents that work on a prompt.
        self._running: set[str] = set()
        self._last: type[Happening] = Happening
        # The hooks have had a start that the agent did not report.
        self._own_start = False

    # ---- before the hooks

    def complete(self, happening: Happening) -> Happening:
        """Return a happening with the facts that the agent leaves out, and without those that are no news."""
        self._memory.enter(happening.session_id)
        last, self._last = self._last, type(happening)
        if self._witness is not None and happening.session_file:
            self._witness.follow(happening.session_file)
        match happening:
            case CallEnded():
                return self._end(happening)
            case CallAsked() if not happening.tool_call_id:
                return replace(happening, tool_call_id=_new_id())
            case PermissionAsked() if not happening.tool_call_id:
                return self._asked(happening)
            case PromptGiven():
                return self._prompt(happening, last)
            case EventsReported():
                return self._events(happening)
        return happening

    def started_by_us(self) -> None:
        """Note that the hooks have had a start of the session that the agent has not reported yet."""
        self._own_start = True

    def _events(self, happening: EventsReported) -> EventsReported:
        events = happening.events
        if has_session_event(happening, "start") or has_session_event(happening, "clear"):
            self._memory.starts()
            self._links.start()
            if self._own_start:
                self._own_start = False
                kept = tuple(each for each in events if not (isinstance(each, SessionEvent) and each.reason == "start"))
                return replace(happening, events=kept)
        known = self._memory.continued(happening.agent_id)
        if known and any(isinstance(each, AgentEnd) for each in events):
            counted = (
                replace(each, continued=max(each.continued, known))
                if isinstance(each, AgentEnd) and (each.continued or not self._bridge.reports_continues)
                else each
                for each in events
            )
            return replace(happening, events=tuple(counted))
        return happening

    # ---- prompts

    def _prompt(self, given: PromptGiven, last: type[Happening]) -> Happening:
        """Return a prompt, or its event without any prompt if no person has written it."""
        agent = given.agent_id
        text = self._texts.pop(agent, None)
        is_ours = text is not None and self._bridge.returns_continue and _begins(given.prompt, text)
        is_empty = not given.prompt.strip() and (agent in self._running or issubclass(last, CallEnded))
        if is_ours or is_empty:
            return _without_events(given)
        self._running.add(agent)
        self._links = Links()
        self._memory.begins_run(agent)
        return given

    # ---- ids

    def _end(self, call: CallEnded) -> CallEnded:
        """Return a result with the id of its call; that of a call which was never judged gets a new one."""
        if call.tool_call_id:
            self._memory.result_came(short_id(call.tool_call_id))
            return call
        key = key_of(call.native_name, call.input)
        found = self._memory.end(key, call.native_name)
        if found is not None:
            return replace(call, tool_call_id=found.identity)
        identity = _new_id()
        if self._memory.has_key(key):
            self._memory.remember(identity)
        return replace(call, tool_call_id=identity)

    def _asked(self, call: PermissionAsked) -> PermissionAsked:
        """Return the agent's question with the id of the call that it is about, if that is known."""
        key = key_of(call.native_name, call.input)
        found = self._memory.open_call(key)
        return call if found is None else replace(call, tool_call_id=found.identity)

    # ---- the hooks

    async def answer(self, happening: Happening, bridging: Bridging) -> Verdict:
        """Return the verdict of the hooks on a complete happening, and remember each judged call."""
        if isinstance(happening, CallAsked | CallEnded):
            known = self._links.known(happening)
            if known is None:
                known = await self._answer_call(happening, bridging)
                self._links.answered(happening, known)
            warning = self._silence(happening, bridging) if isinstance(happening, CallEnded) else None
            return known if warning is None else replace(known, messages=(*known.messages, warning))
        warnings = self._unseen(happening, bridging)
        if isinstance(happening, PermissionAsked | PromptGiven) and (block := self._tripwire.block()) is not None:
            return await bridging.refuse(happening, block)
        verdict = await bridging.answer(happening)
        if warnings:
            verdict = replace(verdict, messages=(*verdict.messages, *warnings))
        if isinstance(happening, PromptGiven) and verdict.block is not None:
            self._running.discard(happening.agent_id)
        if isinstance(happening, EventsReported) and any(isinstance(each, AgentEnd) for each in happening.events):
            self._stop(happening.agent_id, verdict.go_on)
        return verdict

    async def _answer_call(self, happening: CallAsked | CallEnded, bridging: Bridging) -> Verdict:
        match happening:
            case CallEnded():
                warning = self._tripwire.warning(happening, bridging)
                if self._has_overruled(happening):
                    happening, warning = self._overruled(happening)
                verdict = await bridging.answer(happening)
                return verdict if warning is None else replace(verdict, messages=(*verdict.messages, warning))
            case _ if (block := self._tripwire.block()) is not None:
                return await bridging.refuse(happening, block)
            case _:
                try:
                    verdict = await bridging.answer(happening)
                # Hooks that failed have denied the call; the caller hears of the failure.
                except Exception:
                    self._judge(happening, None, keeps=True)
                    raise
                self._judge(happening, verdict, keeps=bridging.has_gates(happening))
                return verdict

    def _judge(self, call: CallAsked, verdict: Verdict | None, *, keeps: bool) -> None:
        """Remember a judged call; `keeps`: beyond the life of this process."""
        identity, is_passed = call.tool_call_id, verdict is not None and verdict.block is None
        self._blocked.pop(short_id(identity), None)
        if not is_passed:
            self._blocked[short_id(identity)] = None
            while len(self._blocked) > _MOST_BLOCKED:
                del self._blocked[next(iter(self._blocked))]
        if not identity.startswith(OWN):
            self._memory.judge(short_id(identity), keeps=keeps, waits=is_passed)
            return
        inputs = [call.input] if verdict is None or verdict.input is None else [call.input, verdict.input]
        keys = tuple(key_of(call.native_name, each) for each in inputs)
        self._memory.remember(*keys)
        # A denied call has no result that could be taken for that of another one.
        if is_passed:
            self._memory.open(identity, call.native_name, keys, keeps=keeps)

    def _has_overruled(self, call: CallEnded) -> bool:
        """Return whether a blocked call ran.  Other agents than those with mods may report a block as a result."""
        return bool(self._bridge.mod) and not call.output.is_error and short_id(call.tool_call_id) in self._blocked

    def _overruled(self, call: CallEnded) -> tuple[CallEnded, str]:
        """Raise the alarm about a blocked call that ran.  Return the call with the agent's mods, and a warning."""
        # Imported here, because it is rarely needed.
        from agent_hooks.installs.mods import loaded_mods

        reason = f"{call.native_name} ran although it was blocked"
        self._tripwire.raise_alarm(reason)
        mods = tuple(map(str, loaded_mods(self._bridge, call.cwd or os.getcwd())))
        named = f" ({'; '.join(mods)})" if mods else ""
        remedy = f"a mod may have overruled your hooks{named}: agent-hooks doctor {self._bridge.name}"
        return replace(call, overruled_by=mods), f"agent_hooks: {reason}; {remedy}"

    def _silence(self, call: CallEnded, bridging: Bridging) -> str | None:
        """Return the text for the user if only one of mod and settings hook has reported a call.

        Without the mod, another mod can overrule the hooks, so the session is stopped.  Without settings hooks, the mod
        judges alone.
        """
        remedy = f"to check: agent-hooks doctor {self._bridge.name}"
        match self._links.silent(call):
            case "mod":
                reason = f"the mod of agent_hooks no longer reports calls, such as {call.native_name}"
                self._tripwire.raise_alarm(reason)
                return f"agent_hooks: {reason}; {remedy}"
            case "settings" if bridging.has_gates(call) and self._memory.is_news("settings hooks"):
                return f"agent_hooks: the settings hooks report no calls, so the mod judges alone; {remedy}"
        return None

    def _unseen(self, happening: Happening, bridging: Bridging) -> list[str]:
        """Return texts for the user about calls that the transcript has and that no hook was asked about."""
        is_rest = isinstance(happening, PromptGiven) or (
            isinstance(happening, EventsReported) and any(isinstance(each, AgentEnd) for each in happening.events)
        )
        if self._witness is None or not is_rest or not happening.session_file or happening.agent_id != "main":
            return []
        found = (self._tripwire.warning(call, bridging) for call in self._witness.ran(happening.session_file))
        return [text for text in found if text is not None]

    def _stop(self, agent: str, go_on: str | None) -> None:
        """Count that hooks kept an agent going, or forget the count of one that stops."""
        if go_on is not None:
            self._texts[agent] = go_on
            self._memory.goes_on(agent)
            return
        self._running.discard(agent)
        self._memory.stops(agent)

    # ---- for the other modules

    def raise_alarm(self, reason: str) -> None:
        """Stop the session until the user lifts the alarm."""
        self._tripwire.raise_alarm(reason)

    def is_news(self, warning: str) -> bool:
        """Return whether the person has not had a warning in this session; from now on it counts as told."""
        return self._memory.is_news(warning)

    def knows(self, identity: str) -> bool:
        """Return whether this session has judged the call with an id, as far as it is in memory."""
        return self._memory.knows(identity)


def has_session_event(happening: Happening, reason: SessionReason) -> bool:
    """Tell whether a happening has a `session` event of that reason."""
    if not isinstance(happening, EventsReported):
        return False
    return any(isinstance(event, SessionEvent) and event.reason == reason for event in happening.events)


def _without_events(given: PromptGiven) -> EventsReported:
    """Return the event of a prompt that is none."""
    return EventsReported(
        name=given.name,
        native=given.native,
        session_id=given.session_id,
        session_file=given.session_file,
        cwd=given.cwd,
        agent_id=given.agent_id,
        takes_context=given.takes_context,
        events=(),
    )


def _begins(prompt: str, text: str) -> bool:
    """Return whether a prompt begins with a text that may have been reformatted, or have lost odd characters."""
    given, own = (" ".join(each.encode("utf-8", "replace").decode().split()) for each in (prompt, text))
    return bool(own) and given.startswith(own)


def _new_id() -> str:
    return f"{OWN}{os.urandom(8).hex()}"
