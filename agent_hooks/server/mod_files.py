"""The files of a mod in the agent home.

A mod is the folder `plugins/NAME` of this package, with a file that has the command for the server and the key of the
mods.  No agent reads the key.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import suppress

import agent_hooks
from agent_hooks.bridges.base import Bridge
from agent_hooks.errors import SettingsError, os_reason
from agent_hooks.installs.generated import stub_path
from agent_hooks.installs.seat import directory
from agent_hooks.storage.files import StorageError, create_atomically, read_regular, write_atomically

_MARKETPLACE = os.path.join(".claude-plugin", "marketplace.json")
_PLACE = os.path.join("hooks", "place.ts")
_KEY = "key"
_KEY_SIZE = 32


def mod_key() -> bytes:
    """Return the key of the mods.  Raises `OSError` and `StorageError` if there is none."""
    path = os.path.join(directory(), _KEY)
    key = read_regular(path, path, _KEY_SIZE)
    if len(key) != _KEY_SIZE:
        raise StorageError(f"{path} holds no key: run agent-hooks install again")
    return key


def write_mod(bridge: Bridge) -> None:
    """Write the files of the mod, after the generated client.  Raises `SettingsError`, `StorageError` and `OSError`."""
    top = os.path.join(directory(), bridge.mod)
    os.makedirs(directory(), mode=0o700, exist_ok=True)
    try:
        shutil.rmtree(top, ignore_errors=True)
        shutil.copytree(_source(bridge), top)
    except (OSError, shutil.Error) as exc:
        reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
        raise SettingsError(f"{top}: cannot be written: {reason}") from None
    # The mods of open sessions, and the server, have an earlier key.
    with suppress(FileExistsError):
        create_atomically(os.path.join(directory(), _KEY), os.urandom(_KEY_SIZE), secret=True, durable=True)
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


def remove_mods() -> bool:
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
