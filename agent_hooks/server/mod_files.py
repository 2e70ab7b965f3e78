"""The files of a mod in the agent home.

A mod is the folder `plugins/NAME` of this package, with a file that has the command for the server and the key of the
mods.  No agent reads the key.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Collection
from contextlib import suppress

import agent_hooks
from agent_hooks.bridges.base import Bridge
from agent_hooks.errors import SettingsError, os_reason
from agent_hooks.installs.generated import stub_path
from agent_hooks.installs.places import same_program
from agent_hooks.installs.seat import directory
from agent_hooks.storage.files import StorageError, create_atomically, read_regular, write_atomically

_MARKETPLACE = os.path.join(".claude-plugin", "marketplace.json")
_PLACE = os.path.join("hooks", "place.ts")
# In the repository, this file loads no mod, because Claude Code refuses the module outside of the first place.
_HOOKS = os.path.join("hooks", "hooks.json")
_KEY = "key"
_KEY_SIZE = 32
# Bytes of the file with the command.
_LONGEST = 1 << 16


def mod_key() -> bytes:
    """Return the key of the mods.  Raises `OSError` and `StorageError` if there is none."""
    path = os.path.join(directory(), _KEY)
    key = read_regular(path, path, _KEY_SIZE)
    if len(key) != _KEY_SIZE:
        raise StorageError(f"{path} holds no key: run agent-hooks install again")
    return key


def write_mod(bridge: Bridge) -> None:
    """Write the files of the mod, after the generated client.  Raises `SettingsError`, `StorageError` and `OSError`."""
    os.makedirs(directory(), mode=0o700, exist_ok=True)
    files = _files(bridge, _kept_key(), sys.executable)
    for path, data in files.items():
        write_atomically(path, data, secret=True, durable=True)
    _remove_others(os.path.join(directory(), bridge.mod), files)


def _kept_key() -> bytes:
    """Return the key, a new one if there is none or if it is damaged."""
    path = os.path.join(directory(), _KEY)
    # The mods of open sessions, and the server, have an earlier key.
    with suppress(FileExistsError):
        create_atomically(path, os.urandom(_KEY_SIZE), secret=True, durable=True)
    try:
        return mod_key()
    except StorageError:
        write_atomically(path, os.urandom(_KEY_SIZE), secret=True, durable=True)
        return mod_key()


def mod_problem(bridge: Bridge) -> str | None:
    """Return the reason why the mod cannot work as `install` writes it, `None` if it can."""
    try:
        files = _files(bridge, mod_key(), _program(bridge))
        for path, data in files.items():
            if read_regular(path, path, len(data) + 1) != data:
                return f"{path} is of another version, or of another Python"
    except (StorageError, SettingsError) as exc:
        return str(exc)
    return None


def _program(bridge: Bridge) -> str:
    """Return the Python that the mod names, if it is another name of this one."""
    path = os.path.join(directory(), bridge.mod, _PLACE)
    with suppress(StorageError):
        text = read_regular(path, path, _LONGEST).decode("utf-8", "replace")
        named = re.search(r'^export const COMMAND: readonly string\[\] = \["([^"\\]+)"', text, re.MULTILINE)
        if named is not None and same_program(named[1], sys.executable):
            return named[1]
    return sys.executable


def _files(bridge: Bridge, key: bytes, program: str) -> dict[str, bytes]:
    """Return the text of each mod file, by path.  The file that leads to the mod comes last."""
    top, source = os.path.join(directory(), bridge.mod), _source(bridge)
    files = dict[str, bytes]()
    try:
        for where, _, names in os.walk(source):
            for name in names:
                path = os.path.join(where, name)
                with open(path, "rb") as file:
                    files[os.path.join(top, os.path.relpath(path, source))] = file.read()
    except OSError as exc:
        raise SettingsError(f"{exc.filename}: cannot be read: {os_reason(exc)}; install agent_hooks again") from None
    command = [program, "-I", "-S", str(stub_path(bridge))]
    place = (
        "// Written by `agent-hooks install`.\n"
        f"export const COMMAND: readonly string[] = {json.dumps(command)}\n"
        f"export const KEY = '{key.hex()}'\n"
    )
    files[os.path.join(top, _PLACE)] = place.encode()
    files[os.path.join(top, _HOOKS)] = _json({"modules": ["./register.ts"]})
    plugins = [{"name": bridge.mod_name, "source": f"./{bridge.mod}"}]
    listed = {"name": bridge.mod_name, "owner": {"name": "agent_hooks"}, "plugins": plugins}
    return {**files, os.path.join(directory(), _MARKETPLACE): _json(listed)}


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def _remove_others(top: str, files: Collection[str]) -> None:
    """Remove the files that an earlier version has left in the mod."""
    for where, _, names in os.walk(top):
        for name in names:
            if (path := os.path.join(where, name)) not in files:
                with suppress(OSError):
                    os.unlink(path)


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
