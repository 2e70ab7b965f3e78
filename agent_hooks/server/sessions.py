"""All sessions of other agents: which of them are loaded, and when they end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from time import monotonic

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.server.calls import Calls, Parents, has_session_event
from agent_hooks.server.session import FindHooks, ServedSession
from agent_hooks.server.tasks import Tasks

MOST_LOADED = 256
"""The number of sessions whose hooks are loaded at once."""
MOST = 4096
"""The number of sessions that are known at once."""


class Sessions:
    """All sessions of this process, by agent and id."""

    def __init__(self, find_hooks: FindHooks, tasks: Tasks) -> None:
        self._find_hooks = find_hooks
        self._tasks = tasks
        self._all: dict[tuple[str, str | None], ServedSession] = {}
        self._parents = Parents()
        # One object for all sessions, because there may be thousands.
        self._make_calls = partial(Calls, knows=self._knows_call)
        # The environment of the last event, which sessions of the same agent share.
        self._environment: Mapping[str, str] = {}
        self._last_event = monotonic()

    def __len__(self) -> int:
        return len(self._all)

    async def answer(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> Verdict:
        """Return the verdict on a happening by the hooks of its session."""
        self._last_event = monotonic()
        happening = self._parents.resolve(bridge.name, happening)
        session = self._session(bridge, happening, environment)
        was_loaded = session.is_loaded
        verdict = await session.answer(happening, environment)
        if happening.leaves:
            session.left = True
            if has_session_event(happening, "shutdown"):
                self._all.pop((bridge.name, happening.session_id), None)
                self._end(session)
                session.sign.end()
        elif session.is_loaded is not was_loaded or len(self._all) > MOST:
            self._bound()
        return verdict

    def _bound(self) -> None:
        """Put sessions aside that had no event for the longest time, if too many are loaded or known."""
        loaded = [session for session in self._all.values() if session.is_loaded]
        for session in loaded[: max(len(loaded) - MOST_LOADED, 0)]:
            if not session.is_busy:
                self._tasks.later(session.put_aside, session.last_event)
        while len(self._all) > MOST:
            key = next(iter(self._all))
            self._end(self._all.pop(key))

    def raise_alarm(self, reason: str) -> None:
        """Stop all sessions that have calls here, until the user lifts the alarm."""
        for session in self._all.values():
            if session.calls is not None:
                session.calls.raise_alarm(reason)

    def environment(self, bridge: Bridge, happening: Happening) -> Mapping[str, str] | None:
        """Return the last known environment of a happening's session, or `None` for an unknown session."""
        happening = self._parents.resolve(bridge.name, happening)
        session = self._all.get((bridge.name, happening.session_id))
        return None if session is None else session.environment

    def end_abandoned(self, idle: float) -> None:
        """End the sessions that can get no more events.

        These are the sessions whose agent has died, and, after `idle` seconds without an event, those that the agent has
        left and those whose process is not known.
        """
        now = monotonic()
        for key, session in list(self._all.items()):
            has_died = session.process is not None and not _is_alive(session.process)
            is_idle = now - session.last_event >= idle and not session.is_busy
            if has_died or (is_idle and (session.left or session.process is None)):
                del self._all[key]
                self._end(session)
                session.sign.end()

    def end(self) -> None:
        """End all sessions; the tasks of those with hooks go on until the hooks have ended."""
        ending = list(self._all.values())
        self._all.clear()
        for session in ending:
            self._end(session)

    def idle_since(self) -> float:
        """Return the time of the last event, in seconds of `time.monotonic`; the time now while an agent lives."""
        is_used = any(session.process is not None and not session.left for session in self._all.values())
        return monotonic() if is_used else self._last_event

    def _end(self, session: ServedSession) -> None:
        if session.needs_task:
            self._tasks.later(session.end)
        else:
            session.end_plain()

    def _session(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> ServedSession:
        """Return the session of a happening, under its present id."""
        key = (bridge.name, happening.session_id)
        process = environment.get(bridge.process_variable, "")
        pid = int(process) if process.isdecimal() else None
        # The sessions stay in the order of their last events.
        session = self._all.pop(key, None) or self._pop_left(pid)
        if session is not None and bridge.headless is not None and pid and session.process not in (None, pid):
            # Another process resumes the session, and a person may be at the one and not at the other.
            self._end(session)
            session = None
        if session is None:
            session = ServedSession(bridge, self._find_hooks, self._tasks, pid, self._make_calls, key[1])
        session.left = False
        session.environment = self._environment = self._environment if environment == self._environment else environment
        # Another process may resume a session that has had no end.
        session.process = pid or session.process
        self._all[key] = session
        session.sign.seen(session.process)
        return session

    def _knows_call(self, agent: str, identity: str) -> bool:
        """Return whether a session of an agent has judged the call with an id."""
        own = (session.calls for (name, _), session in self._all.items() if name == agent)
        return any(calls is not None and calls.knows(identity) for calls in own)

    def _pop_left(self, pid: int | None) -> ServedSession | None:
        """Remove and return the session that a process has left: its hooks continue in the process's next session."""
        if pid is None:
            return None
        left = (key for key, session in self._all.items() if session.left and session.process == pid)
        key = next(left, None)
        return None if key is None else self._all.pop(key)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # The process belongs to another user.
        return True
    return True
