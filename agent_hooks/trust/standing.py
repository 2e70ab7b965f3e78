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
        """Return a sentence when a loaded project has lost its approval; takes a few microseconds if nothing changed."""
        if not self._projects or (state := _state_of(self._path)) == self._read:
            return None
        self._read = state
        store = self._trust.store()
        for project in self._projects:
            entry = store.entries.get(project.key)
            if entry is None or not (entry.always or (project.digest is not None and entry.approval(project.digest))):
                return f"the approval of {project.project} was taken back, so its hooks end"
        return None


def _state_of(path: str) -> _State:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ctime_ns, found.st_size, found.st_ino
