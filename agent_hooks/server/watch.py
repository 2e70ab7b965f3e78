"""Finds the edits of hooks and settings that are made while a session runs, tells the person, and records them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import PROJECT_DIRECTORY, agent_home
from agent_hooks.trust.contents import contents, differences
from agent_hooks.trust.own import KEPT
from agent_hooks.trust.place import Place
from agent_hooks.trust.store import STORE
from agent_hooks.trust.unlocked import unlocked_directories
from agent_hooks.ui.harmless import harmless


class Kept:
    """The contents of the hooks and settings of a place and of the agent home, as they were last recorded."""

    def __init__(self, place: Place) -> None:
        projects = (os.path.join(project, PROJECT_DIRECTORY) for project in place.projects)
        self._directories = tuple(dict.fromkeys((agent_home(), *projects)))
        self._before = contents(self._directories)

    def record(self, runner: HookRunner) -> None:
        """Write the edits since the last time into the records."""
        now = contents(self._directories)
        edits = differences(self._before, now)
        self._before = now
        if edits:
            runner.record_edits(edits, unlocked_directories())


def changes_of_own(changed: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for the person when some of the changed files are the person's own hooks or settings.

    A project's files need no such sentence: they count only when the person has approved them.
    """
    home = f"{agent_home()}{os.sep}"
    ours = {os.path.join(home, name) for name in (STORE, KEPT)}
    own = sorted(path for path in changed if path.startswith(home) and path not in ours)
    if not own:
        return ()
    return (f"agent_hooks: your own hooks or settings changed while the session runs: {harmless(', '.join(own))}",)
