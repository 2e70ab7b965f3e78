"""The bridge that judges an event: an agent may run the entries of another agent, beside its own.

Copilot CLI and Cursor run the entries of Claude Code.  An event of theirs is judged once: by the entry of the agent
itself if it has one, else by the other entry, but with the agent's own table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from agent_hooks.bridges import guests, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.errors import SettingsError
from agent_hooks.settings_file import read_file


def judging_bridge(name: str, environment: Mapping[str, str], payload: object) -> Bridge | None:
    """Return the bridge for an event that came to an entry of the agent `name`; `None` if the entry is to be silent.

    Raises `KeyError` if there is no such agent.
    """
    bridge = open_bridge(name)
    is_here = bridge.runs_here(environment)
    for guest in guests(name, environment):
        # One agent may have started the other, so that both have set their variables.
        if not is_here or guest.knows(payload):
            return None if has_entry(open_bridge(guest.name), environment) else guest
    return bridge if is_here else None


def has_entry(bridge: Bridge, environment: Mapping[str, str]) -> bool:
    """Return whether the agent has an entry of ours at its gate of tool calls, in one of its own settings files."""
    project = environment.get(bridge.project_variable) or os.getcwd()
    paths = bridge.settings_files(environment).values()
    gate = bridge.facts(project, environment).event
    return any(_has_gate(bridge, gate, os.path.join(project, os.path.expanduser(path))) for path in paths)


def _has_gate(bridge: Bridge, gate: str, path: str) -> bool:
    try:
        settings = json.loads(read_file(path) or b"{}")
    except (SettingsError, ValueError, RecursionError):
        # The agent cannot read such a file either.
        return False
    entries = bridge.installed(settings) if isinstance(settings, dict) else ()
    return any(entry.event == gate and not entry.limits for entry in entries)
