"""The sub-agents that have sessions of their own: their events belong to the session of the agent that began them."""

from __future__ import annotations

from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import EventsReported, Happening
from agent_hooks.values.events import SessionEvent

MOST = 4096
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
            while len(self._parents) > MOST:
                del self._parents[next(iter(self._parents))]
