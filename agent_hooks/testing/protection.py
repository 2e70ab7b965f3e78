"""The files by which an agent could switch our hooks off, held against the guards; a part of `check_bridge`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from agent_hooks.bridges.base import Bridge
from agent_hooks.guards import builtin_guards
from agent_hooks.guards.agents import AGENT_PLACES, moved
from agent_hooks.guards.base import GuardedCall

_HOME, _ELSEWHERE = "/home/you", "/elsewhere/of/you"


def unprotected(bridge: Bridge) -> Iterator[str]:
    """Yield a sentence for each place of the agent that the built-in guards do not protect, and for a missing row.

    The places are the settings, the file of trusted entries, the files that can keep hooks from running, and the person's
    own settings where each variable of the agent moves them.
    """
    table = "AGENT_PLACES in agent_hooks/guards/agents.py"
    if not any(place.agent == bridge.name for place in AGENT_PLACES):
        yield f"{table} has no row for {bridge.name}: its plugins, policies and rules belong there"
    usual = _paths(bridge, {})
    for path in {*usual, *bridge.facts("/project", {}).files}:
        if not _is_protected(path):
            yield f"no guard protects {path}: {table}"
    for variable in bridge.environment:
        environment = {variable: _ELSEWHERE}
        known = [os.path.join(folder, name) for folder, names in moved(environment) for name in names]
        for path in _paths(bridge, environment) - usual:
            if not _is_protected(path, known):
                yield f"no guard protects {path}, to which the variable {variable} moves the settings: {table}"


def _paths(bridge: Bridge, environment: dict[str, str]) -> set[str]:
    """Return the files with entries, by each name that they can have, and the file of trusted entries."""
    files = bridge.settings_files(environment)
    trusted = bridge.trust_file(environment)
    folder = os.path.dirname(files.get("user", ""))
    return {*files.values(), *(os.path.join(folder, name) for name in bridge.settings_names), *filter(None, [trusted])}


def _is_protected(path: str, known: list[str] | None = None) -> bool:
    """Return whether the guards stop a file tool and a command that would change the file."""
    path = path.replace("~", _HOME, 1)
    calls = ({"path": path, "content": ""}, "write"), ({"command": f"rm '{path}'"}, "bash")
    guarded = [GuardedCall(tool_name=name, input=given, cwd="/project", home=_HOME) for given, name in calls]
    guards = builtin_guards(protected=known or ())
    return all(any(guard.judge(call) is not None for guard in guards) for call in guarded)
