"""The mod of an agent whose plugins can overrule settings hooks: its files in the agent home, and its place in the chain.

The mod is the folder `plugins/NAME` of this package, with a file that has the command for the server and a key.  The key
is made from the key of the agent home, and no agent reads it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import agent_hooks
from agent_hooks.bridges.base import Bridge
from agent_hooks.errors import SettingsError, os_reason
from agent_hooks.guards.control import MODS
from agent_hooks.installs.edits import Edit, edit, undo
from agent_hooks.installs.generated import stub_path
from agent_hooks.installs.places import targets
from agent_hooks.settings import agent_home
from agent_hooks.storage.files import write_atomically

_MARKETPLACE = os.path.join(".claude-plugin", "marketplace.json")
_PLACE = os.path.join("hooks", "place.ts")


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


def write_seat(bridge: Bridge) -> None:
    """Write the files of the mod, after the generated client.  Raises `SettingsError`, `StorageError` and `OSError`."""
    # Imported here, because most commands only read settings.
    from agent_hooks.server.files import mod_key

    top = os.path.join(directory(), bridge.mod)
    os.makedirs(directory(), mode=0o700, exist_ok=True)
    try:
        shutil.rmtree(top, ignore_errors=True)
        shutil.copytree(_source(bridge), top)
    except (OSError, shutil.Error) as exc:
        reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
        raise SettingsError(f"{top}: cannot be written: {reason}") from None
    command = [sys.executable, "-I", "-S", str(stub_path(bridge))]
    place = (
        "// Written by `agent-hooks install`.\n"
        f"export const COMMAND: readonly string[] = {json.dumps(command)}\n"
        f"export const KEY = '{mod_key().hex()}'\n"
    )
    write_atomically(os.path.join(top, _PLACE), place.encode(), secret=True, durable=True)
    plugins = [{"name": bridge.mod_name, "source": f"./{bridge.mod}"}]
    listed = {"name": bridge.mod_name, "owner": {"name": "agent_hooks"}, "plugins": plugins}
    write_atomically(os.path.join(directory(), _MARKETPLACE), json.dumps(listed, indent=2).encode() + b"\n")


def remove_seat() -> bool:
    """Remove the files of all mods, and return whether there were any.  Raises `SettingsError`."""
    try:
        shutil.rmtree(directory())
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise SettingsError(f"{directory()}: cannot be removed: {os_reason(exc)}") from None
    return True


def _source(bridge: Bridge) -> str:
    """Return the folder of the mod, in the package or, where the package is developed, next to it."""
    package = os.path.dirname(agent_hooks.__file__)
    inside = os.path.join(package, "plugins", bridge.mod)
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "plugins", bridge.mod)
