"""Find out which agents are on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from agent_hooks.bridges.base import Bridge
from agent_hooks.storage.programs import find_program


class Presence(Struct, frozen=True):
    """The signs of an agent: its program, which lies outside of the project, and the directory of the person's settings.

    `name`: the name of the program; `directory`: the place where the directory would be, `~` for the home.
    """

    name: str
    directory: str
    program: str | None
    is_used: bool

    def __bool__(self) -> bool:
        """Return whether the agent is here."""
        return self.program is not None or self.is_used

    def absence(self) -> str:
        """Return in words that the agent is not here."""
        return f"no program {self.name} on the PATH, and no {self.directory}"


def presence(bridge: Bridge, project: str, environment: Mapping[str, str] = os.environ) -> Presence:
    """Return the signs of an agent."""
    directory, name = bridge.directory(environment), bridge.facts(project, environment).program
    program = find_program(name, outside=project)
    return Presence(name, directory, program, os.path.isdir(os.path.expanduser(directory)))
