"""The edits of the file in which another agent notes the entries that it trusts.

Codex runs an entry only if a hash of it stands there, under a key with the entry's position in the settings.  So each
edit of the settings has its edit of this file: our entries become trusted, and the entries of others keep their trust
where an entry of ours moves them to another position.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.errors import shown
from agent_hooks.installs.edits import Edit, Settings, edit, read_settings, undo

_HASH = "trusted_hash"


def trusting(bridge: Bridge, settings: Edit) -> list[Edit]:
    """Return the edit by which the agent trusts our entries after the edit of its settings; none if it needs no trust.

    Raises `SettingsError`.
    """
    path = trust_path(bridge)
    if path is None:
        return []
    before, after = settings.settings()
    change = _Change(bridge, settings.path, before, after)
    return [edit(path, change.forth, format="toml", keep=not change.is_known(path))]


def distrusting(bridge: Bridge, settings: Edit) -> list[Edit]:
    """Return the edit that takes the trust in our entries back after the edit of the settings; raises `SettingsError`."""
    path = trust_path(bridge)
    if path is None:
        return []
    before, after = settings.settings()
    back, again = _Change(bridge, settings.path, before, after), _Change(bridge, settings.path, after, before)
    return [undo(path, back.forth, lambda found: back.forth(again.forth(found)), format="toml")]


def trust_path(bridge: Bridge) -> str | None:
    """Return the absolute path of the file with the trusted entries, `None` if the agent needs none."""
    path = bridge.trust_file(os.environ)
    return None if path is None else os.path.abspath(os.path.expanduser(path))


def untrusted(bridge: Bridge, path: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the keys of our entries in a settings file that the agent does not trust.  Raises `SettingsError`."""
    file = trust_path(bridge)
    if file is None:
        return []
    state = _state(read_settings(file, "toml")[1])
    wanted = {key: each for known in _known_paths(path) for key, each in bridge.trust(known, settings).items()}
    return [key for key, digest in wanted.items() if state.get(key, {}).get(_HASH) != digest]


class _Change:
    """The change of the trust file that goes with a change of a settings file, from `before` to `after`."""

    def __init__(self, bridge: Bridge, path: str, before: Settings, after: Settings) -> None:
        known = _known_paths(path)
        self._wanted = {key: digest for each in known for key, digest in bridge.trust(each, after).items()}
        self._hashes = {*self._wanted.values(), *bridge.trust(path, before).values()}
        self._moved = {was: now for each in known for was, now in bridge.moved_trust(each, before, after).items()}
        self._starts = tuple(f"{each}:" for each in known)

    def is_known(self, path: str) -> bool:
        """Return whether the file trusts an entry of ours already."""
        return any(self._is_ours(key, entry) for key, entry in _state(read_settings(path, "toml")[1]).items())

    def forth(self, found: Mapping[str, Any]) -> Settings:
        """Return the content of the trust file after the change.  Raises `BridgeError`."""
        hooks = found.get("hooks", {})
        if not isinstance(hooks, Mapping) or not isinstance(hooks.get("state", {}), Mapping):
            raise BridgeError(f"hooks.state must be a table, not {shown(hooks)}")
        former = {key: entry for key, entry in hooks.get("state", {}).items() if self._is_ours(key, entry)}
        state = {key: entry for key, entry in hooks.get("state", {}).items() if key not in former}
        moved = {self._moved[key]: state.pop(key) for key in list(state) if key in self._moved}
        ours = {key: {**former.get(key, {}), _HASH: digest} for key, digest in self._wanted.items()}
        return _with(found, hooks, state | moved | ours)

    def _is_ours(self, key: str, entry: object) -> bool:
        return key.startswith(self._starts) and isinstance(entry, Mapping) and entry.get(_HASH) in self._hashes


def _with(found: Mapping[str, Any], hooks: Mapping[str, Any], state: Settings) -> Settings:
    """Return settings with another state of the hooks, without tables that are left empty."""
    left = {**hooks, "state": state} if state else {key: each for key, each in hooks.items() if key != "state"}
    return {**found, "hooks": left} if left else {key: each for key, each in found.items() if key != "hooks"}


def _state(found: Mapping[str, Any]) -> Mapping[str, Any]:
    hooks = found.get("hooks")
    state = hooks.get("state") if isinstance(hooks, Mapping) else None
    return {key: each for key, each in state.items() if isinstance(each, Mapping)} if isinstance(state, Mapping) else {}


def _known_paths(path: str) -> list[str]:
    """Return the paths by which the agent may know a settings file: as it is written, and with its directory resolved.

    Codex resolves the directory that `CODEX_HOME` names, but not the links in `~/.codex`.
    """
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return list(dict.fromkeys([real, os.path.abspath(path)]))
