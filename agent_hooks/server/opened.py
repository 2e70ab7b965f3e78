"""The loaded hooks of a session, with everything that answers its happenings."""

from __future__ import annotations

from msgspec import Struct

from agent_hooks.bridges.driver import Bridging
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.sources import Sources
from agent_hooks.trust.place import Place, find_place


class Opened(Struct, frozen=True):
    """The hooks that were loaded for a session.

    `place`: the projects that they come from; `news`: texts for the person about the loading; `resident`: this process
    answers all events of the session.
    """

    runner: HookRunner
    bridging: Bridging
    sources: Sources
    place: Place
    news: tuple[str, ...] = ()
    resident: bool = False

    def covers(self, cwd: str) -> bool:
        """Tell whether no other project than those of `place` applies to a working directory."""
        return set(find_place(cwd).projects) <= set(self.place.projects)
