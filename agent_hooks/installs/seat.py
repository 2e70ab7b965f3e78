"""The place of a mod in the settings of an agent whose plugins can overrule settings hooks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base import Bridge
from agent_hooks.installs.edits import Edit, edit, undo
from agent_hooks.installs.places import targets
from agent_hooks.settings import agent_home

MODS = "mods"
"""The name in the agent home of the directory with the mods and their key."""


def directory() -> str:
    """Return the directory in the agent home that holds the mods."""
    return os.path.join(agent_home(), MODS)


def seated(bridge: Bridge, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's settings of an agent in which it loads the mod before all others."""
    return bridge.seated(settings, directory())


def seating(bridge: Bridge, project: str) -> Edit:
    """Return the edit of the user's settings that gives the mod the first place.  Raises `SettingsError`."""
    user = targets(bridge, project)["user"]
    return edit(user.path, lambda settings: seated(bridge, settings), format=user.format, keep=True)


def unseating(bridge: Bridge, project: str) -> Edit:
    """Return the edit that takes the mod out of the user's settings.  Raises `SettingsError`."""
    user = targets(bridge, project)["user"]

    def forth_and_back(settings: Mapping[str, Any]) -> dict[str, Any]:
        return bridge.unseated(seated(bridge, settings))

    return undo(user.path, bridge.unseated, forth_and_back, format=user.format)
