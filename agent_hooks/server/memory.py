"""The memory of one session of another agent: its judged calls, and the rest that must outlive an event.

It is kept twice: in this process, and in the session's journal, which outlives the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from agent_hooks.server.journal import Alarm, Journal, as_json
from agent_hooks.storage.digests import sha256

MOST = 1000
"""The number of judged calls that are kept in memory; the journal keeps more."""
_MOST_WAITING = 500
"""The number of judged calls without a result that stay in the journal, however many calls come after them."""
_LONGEST_ID = 200
"""The number of characters from which an id is kept as a digest."""


class OpenCall(Struct):
    """A judged call without an id of the agent's, whose result has not come.

    `keys`: the digests of its tool with the input that was judged, and with the one that hooks made of it.
    """

    identity: str
    tool: str
    keys: tuple[str, ...]


class Memory:
    """The memory of one session: `memory.enter(session)` before each event.  `session`: the session's id."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self.session: str | None = None
        self._journal: Journal | None = None
        # The ids and keys of judged calls, the oldest first.
        self._judged: dict[str, None] = {}
        # The ids of the agent's that the journal has, and whose result has not come.
        self._waiting: dict[str, None] = {}
        self._open: list[OpenCall] = []
        # How often hooks kept an agent going in a row, by agent.
        self._continued: dict[str, int] = {}
        # The warnings that the person has had.
        self._told: tuple[str, ...] = ()
        # An alarm that could not be written.
        self._unwritten: Alarm | None = None

    def enter(self, session: str | None) -> None:
        """Go on with the journal of a session; an agent may go on in another one."""
        if session == self.session:
            return
        self.session = session
        self._journal = None if session is None else Journal(self._agent, session, self._carried)
        self._unwritten, self._told = None, ()
        self._waiting = {}
        if self._journal is not None:
            for word, *facts in filter(None, self._journal.lines()):
                self._recall(word, facts)

    def _recall(self, word: str, facts: list[str]) -> None:
        """Take a line of an earlier process into memory."""
        match word, facts:
            case "call", [identity]:
                self.remember(identity)
            case "waits", [identity]:
                self._wait(identity)
            case "open", [identity, tool, *keys]:
                # A line that was carried over stands in two files.
                self._close(lambda each: each.identity == identity)
                self._open.append(OpenCall(identity, tool, tuple(keys)))
                self.remember(*keys)
            case "end", [identity]:
                self._close(lambda each: each.identity == identity)
            case "goes on", [agent]:
                self._continued[agent] = self._continued.get(agent, 0) + 1
            case "prompt" | "stop", [agent]:
                self._continued.pop(agent, None)
                self._open = [] if word == "prompt" else self._open
            case "told", [word] if word not in self._told:
                self._told = (*self._told, word)

    # ---- calls with an id of the agent's

    def judge(self, identity: str, *, keeps: bool, waits: bool) -> None:
        """Remember a judged call; `keeps`: in the journal too; `waits`: a result of it may come."""
        self.remember(identity)
        if keeps:
            self._add("call", identity)
            if waits:
                self._wait(identity)

    def result_came(self, identity: str) -> None:
        """Wait no more for the result of a call."""
        self._waiting.pop(identity, None)

    def knows(self, identity: str) -> bool:
        """Return whether this session has judged the call with an id, as far as it is in memory."""
        return identity in self._judged

    def has_judged(self, identity: str) -> bool:
        """Return whether a call with this id was judged, by this process or an earlier one."""
        if identity in self._judged:
            return True
        # An id may be the same text as another fact of the journal.
        return self._journal is not None and any(self._journal.holds([word, identity]) for word in ("call", "waits"))

    # ---- calls without an id

    def open(self, identity: str, tool: str, keys: tuple[str, ...], *, keeps: bool) -> None:
        """Remember a judged call whose result may come; `keeps`: in the journal too."""
        self._open = [*self._open[1 - MOST :], OpenCall(identity, tool, keys)]
        if keeps:
            self._add("open", identity, tool, *keys)

    def open_call(self, key: str) -> OpenCall | None:
        """Return the oldest open call with a key."""
        return next((each for each in self._open if key in each.keys), None)

    def end(self, key: str, tool: str) -> OpenCall | None:
        """Remove and return the call of a result: the oldest open one with a key, or else the oldest of a tool."""
        found = self._close(lambda each: key in each.keys) or self._close(lambda each: each.tool == tool)
        if found is not None:
            self._add("end", found.identity)
            self.remember(found.identity)
        return found

    def _close(self, fits: Callable[[OpenCall], bool]) -> OpenCall | None:
        """Remove and return the oldest open call that fits."""
        found = next(filter(fits, self._open), None)
        if found is not None:
            self._open.remove(found)
        return found

    def has_key(self, key: str) -> bool:
        """Return whether a call with this key was judged, by this process or an earlier one."""
        # A key is a digest, so no other fact of the journal is the same.
        return key in self._judged or (self._journal is not None and self._journal.holds(key))

    # ---- runs

    def continued(self, agent: str) -> int:
        """Return how often in a row hooks have kept an agent going."""
        return self._continued.get(agent, 0)

    def goes_on(self, agent: str) -> None:
        """Count that hooks have kept an agent going."""
        self._continued[agent] = self._continued.get(agent, 0) + 1
        self._add("goes on", agent)

    def stops(self, agent: str) -> None:
        """Forget the count of an agent that stops."""
        if self._continued.pop(agent, None):
            self._add("stop", agent)

    def begins_run(self, agent: str) -> None:
        """Forget what the agent's last run has left: its count, and calls that have no result any more."""
        if self._continued.pop(agent, None) or self._open:
            self._open = []
            self._add("prompt", agent)

    # ---- the session

    def saw_start(self) -> bool:
        """Return whether the journal has the session's start, and no gap since."""
        journal = self._journal
        return journal is not None and journal.failed is None and journal.holds(["start"])

    def starts(self) -> None:
        """Remember that the session's start was seen."""
        self._add("start")

    def is_news(self, warning: str) -> bool:
        """Return whether the person has not had a warning in this session; from now on it counts as told."""
        if warning in self._told:
            return False
        self._told = (*self._told, warning)
        self._add("told", warning)
        return True

    def raise_alarm(self, alarm: Alarm) -> None:
        """Write an alarm.  Raises `OSError`; the alarm holds all the same, until this process ends."""
        assert self._journal is not None, "a session without a journal has no start"
        try:
            self._journal.raise_alarm(alarm)
        except OSError:
            self._unwritten = alarm
            raise

    def alarm(self) -> Alarm | None:
        """Return the session's alarm, `None` if there is none or a person has lifted it."""
        if self._unwritten is not None or self._journal is None:
            return self._unwritten
        return self._journal.alarm()

    # ---- the journal

    def remember(self, *identities: str) -> None:
        """Remember ids and keys of judged calls, in this process only."""
        self._judged |= dict.fromkeys(identities)
        while len(self._judged) > MOST:
            del self._judged[next(iter(self._judged))]

    def _wait(self, identity: str) -> None:
        self._waiting[identity] = None
        while len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _carried(self) -> Iterator[tuple[str, ...]]:
        """Yield the lines that have to stay in the journal: the calls whose result may still come, and the warnings."""
        yield from (("told", word) for word in self._told)
        yield from (("waits", identity) for identity in self._waiting)
        yield from (("open", each.identity, each.tool, *each.keys) for each in self._open[-_MOST_WAITING:])

    def _add(self, *line: str) -> None:
        if self._journal is not None:
            self._journal.add(*line)


def key_of(tool: str, input: Mapping[str, Any]) -> str:
    """Return a digest of a call without an id."""
    return sha256(as_json([tool, input]))[:24]


def short_id(identity: str) -> str:
    """Return an id, or the digest of a long one."""
    if len(identity) <= _LONGEST_ID:
        return identity
    return sha256(identity.encode("utf-8", "surrogatepass"))
