"""Whether the projects whose hooks run still have their approval: `agent-hooks untrust` ends them at once."""

from __future__ import annotations

import os

from agent_hooks.trust.policy import Trust, TrustedSources
from agent_hooks.trust.store import STORE

_State = tuple[int, int, int] | None


class Standing:
    """The approvals that loaded sources stand on: `if reason := standing.withdrawn(): …`."""

    def __init__(self, trust: Trust, sources: TrustedSources) -> None:
        self._trust = trust
        self._path = os.path.join(trust.agent_home, STORE)
        self._projects = [each for each in sources.projects if each.files is not None]
        # The state of the store is unknown until it is read for the first time.
        self._read: _State = None

    def withdrawn(self) -> str | None:
        """Return a sentence when a loaded project has lost its approval; takes a few microseconds if nothing changed.

        The sentence is empty where another set of the project is approved in its place: a person follows the saves of a
        hook, for example, and the next load finds the new set.
        """
        if not self._projects or (state := _state_of(self._path)) == self._read:
            return None
        store, superseded = self._trust.store(), False
        if store.problem is not None:
            # Not withdrawn: the next load denies every call until the store is rebuilt.
            return ""
        for project in self._projects:
            entry = store.entries.get(project.key)
            if entry is None or not entry.judges:
                return f"the approval of {project.project} was taken back, so its hooks end"
            superseded |= not entry.always and (project.digest is None or entry.approval(project.digest) is None)
        self._read = state
        return "" if superseded else None


def _state_of(path: str) -> _State:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ctime_ns, found.st_size, found.st_ino
