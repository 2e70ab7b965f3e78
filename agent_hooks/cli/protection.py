"""The guards of an agent, with the files that control the agent in its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

import agent_hooks
from agent_hooks.guards import builtin_guards
from agent_hooks.guards.agents import moved, usual
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import GuardSettings
from agent_hooks.guards.control import HOOK_NAMES, SEALED_NAMES, UNREAD_NAMES
from agent_hooks.hooks.bytecode import cache_directory
from agent_hooks.server.client import directory
from agent_hooks.settings import (
    COMMANDS_DIRECTORY,
    INSTRUCTIONS_FILE,
    MCP_FILE,
    PROJECT_DIRECTORY,
    SKILLS_DIRECTORY,
    Settings,
    agent_home,
)
from agent_hooks.trust.place import Place

# These files of the user reach later sessions, so an agent does not write them.
_LASTING = (INSTRUCTIONS_FILE, COMMANDS_DIRECTORY, SKILLS_DIRECTORY, MCP_FILE)


def guards_of(
    settings: Settings,
    section: GuardSettings,
    place: Place,
    hook_files: Sequence[str] = (),
    *,
    sealed: Sequence[str] | None = None,
) -> list[Guard]:
    """Return the guards of an agent that has these settings, for the agent itself and for `agent-hooks guard`.

    `section`: the guards' section; `hook_files`: absolute paths of more hooks; `sealed`: as for `agent_guards`.
    """
    lasting = [os.path.join(agent_home(), name) for name in _LASTING]
    return agent_guards(
        section, place, [*settings.hooks, *settings.hook_patterns, *hook_files, *lasting], sealed=sealed
    )


def agent_guards(
    settings: GuardSettings, place: Place, more: Sequence[str] = (), *, sealed: Sequence[str] | None = None
) -> list[Guard]:
    """Return the guards of an agent that works in a place; they also protect the files that control it.

    Its settings, hooks and transformers are protected, unless a person unlocks them; the state of this program is sealed.
    `more`: absolute paths of more hooks; `sealed`: absolute paths of more sealed files, by default the settings files of
    other agents that hold entries of ours.
    """
    own = agent_home()
    homes = (
        own,
        *(os.path.join(project, PROJECT_DIRECTORY) for project in dict.fromkeys((*place.projects, place.top))),
    )
    if sealed is None:
        sealed = _installations(place)
    hooks = [*(os.path.join(home, name) for home in homes for name in HOOK_NAMES), *more, *_of_agents(place, sealed)]
    state = [os.path.join(own, name) for name in SEALED_NAMES if name not in UNREAD_NAMES]
    return builtin_guards(
        settings,
        protected=_with_targets(hooks),
        sealed=_with_targets([*state, *_installed(place), *sealed]),
        records=_with_targets(os.path.join(own, name) for name in UNREAD_NAMES),
        agent_home=own,
    )


def _of_agents(place: Place, hooked: Sequence[str]) -> Iterable[str]:
    """Yield the files and trees by which agents decide: of those that run our hooks, and where a variable has them.

    Those of other agents are known by their names.
    """
    tops = dict.fromkeys((*place.projects, place.top, os.path.expanduser("~")))
    for folder, names in (*usual(tops, hooked), *moved(os.environ)):
        path = os.path.abspath(os.path.expanduser(folder))
        yield from (os.path.join(path, name) for name in names)


def _with_targets(paths: Iterable[str]) -> list[str]:
    """Return paths and, of links, their targets."""
    paths = list(paths)
    return list(dict.fromkeys([*paths, *map(os.path.realpath, paths)]))


def _installations(place: Place) -> list[str]:
    """Return the settings files of other agents that run our hooks, or that cannot be read."""
    # Imported here, because the process of one event knows its own files.
    from agent_hooks.bridges import usable_bridges
    from agent_hooks.installs.places import installations

    return [each.target.path for bridge in usable_bridges() for each in installations(bridge, place.top)]


def _installed(place: Place) -> Iterable[str]:
    """Yield the files of this program: its command, cache and server, and its package unless it is developed here."""
    # The name that pip and uv give the command.
    yield os.path.join(sys.prefix, "bin", "agent-hooks")
    package = os.path.dirname(agent_hooks.__file__)
    if not package.startswith(f"{place.top.rstrip('/')}/"):
        yield package
    if (cache := cache_directory()) is not None:
        yield os.path.dirname(cache)
    yield directory()
