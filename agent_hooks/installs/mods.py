"""The mods of Claude Code: plugins whose code runs in the client, where it can answer and change the events of a call.

The client tells nobody which mods it loads, so they are found in the files from which it loads them.  A mod that the
option `--plugin-dir` names is in no file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape, glob
from itertools import islice
from pathlib import Path
from typing import Any

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.installation import Mod
from agent_hooks.installs.places import targets
from agent_hooks.storage.files import StorageError, open_regular

_SUFFIXES = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
# `on('tool.call', …)`
_EVENT = re.compile(r"""\bon\(\s*(['"`])([\w.*]+)\1""")
# Files of a mod that are read, bytes of each, and mods in a directory of theirs.
_FILES, _BYTES, _MODS = 50, 1 << 20, 100


def loaded_mods(bridge: Bridge, project: str, environment: Mapping[str, str] = os.environ) -> list[Mod]:
    """Return the other mods that an agent loads for a project.  An agent without mods has none."""
    if not bridge.mod:
        return []
    files = {name: target.path for name, target in targets(bridge, project, environment).items()}
    tiers = {"managed": bridge.managed, "user": [files["user"]], "project": [files["project"], files["local"]]}
    settings = [(tier, _object(Path(path))) for tier, paths in tiers.items() for path in paths]
    home = Path(os.path.expanduser(bridge.directory(environment)))
    ours = f"{bridge.mod_name}@{bridge.mod_name}"
    return [mod for mod in _mods(bridge, settings, home) if mod.name != ours]


def _mods(bridge: Bridge, settings: Sequence[tuple[str, Mapping[str, Any]]], home: Path) -> Iterator[Mod]:
    """Yield the mods; `settings`: the content of each settings file, with the tier that its plugins get."""
    markets, enabled_key, first_key = bridge.mod_keys
    places = _Places([found.get(markets) for _, found in settings], home)
    for tier, found in settings:
        enabled, first = found.get(enabled_key), found.get(first_key)
        # In the settings of a project, the list of the first plugins has no effect.
        names = [str(each) for each in first] if isinstance(first, list) and tier != "project" else []
        for name in dict.fromkeys([*names, *(enabled if isinstance(enabled, dict) else ())]):
            is_on = not isinstance(enabled, dict) or enabled.get(name, name in names) is True
            if is_on and (mod := _mod(name, "prepend" if name in names else tier, places.of(name))) is not None:
                yield mod
    files = glob(os.path.join(escape(str(home)), "dev-mods", "**", "hooks", "hooks.json"), recursive=True)
    for file in sorted(files)[:_MODS]:
        root = Path(file).parent.parent
        if (mod := _mod(root.name, "dev-mods", root)) is not None:
            yield mod


class _Places:
    """The directories of plugins, by the files in which the client notes them."""

    def __init__(self, markets: Iterable[object], home: Path) -> None:
        self._installed = _object(home / "plugins" / "installed_plugins.json").get("plugins")
        known = _object(home / "plugins" / "known_marketplaces.json")
        self._markets = {name: _text(each, "installLocation") for name, each in known.items()}
        for listed in markets:
            for name, each in listed.items() if isinstance(listed, dict) else ():
                source = each.get("source") if isinstance(each, dict) else None
                self._markets.setdefault(name, _text(source, "path"))

    def of(self, name: str) -> Path | None:
        """Return the directory of a plugin, `NAME@MARKETPLACE`, as far as it is known."""
        entries = self._installed.get(name) if isinstance(self._installed, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            if path := _text(entry, "installPath"):
                return Path(path)
        plugin, _, market = name.partition("@")
        if not (place := self._markets.get(market)):
            return None
        listed = _object(Path(place, ".claude-plugin", "marketplace.json")).get("plugins")
        for each in listed if isinstance(listed, list) else ():
            if _text(each, "name") == plugin and (source := _text(each, "source")):
                return Path(place, source)
        return None


def _mod(name: str, tier: str, root: Path | None) -> Mod | None:
    """Return the mod of a plugin, `None` without a hooks module."""
    if root is None:
        return Mod(name, tier, None)
    if not isinstance(_object(root / "hooks" / "hooks.json").get("modules"), list):
        return None
    events = dict.fromkeys(event for text in _sources(root) for _, event in _EVENT.findall(text))
    return Mod(name, tier, tuple(events))


def _sources(root: Path) -> Iterator[str]:
    found = map(Path, sorted(glob(os.path.join(escape(str(root)), "**"), recursive=True)))
    files = (path for path in found if path.suffix in _SUFFIXES and "node_modules" not in path.parts)
    for path in islice(files, _FILES):
        yield _read(path).decode("utf-8", "replace")


def _object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file.  Without one, the object is empty."""
    try:
        found = json.loads(_read(path) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: Path) -> bytes:
    """Return the beginning of a regular file.  An unreadable file counts as empty."""
    try:
        with open_regular(str(path), path.name) as file:
            return file.read(_BYTES)
    except StorageError:
        return b""


def _text(found: Any, key: str) -> str:
    value = found.get(key) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""
