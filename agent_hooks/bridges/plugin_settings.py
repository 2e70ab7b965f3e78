"""The half of a bridge to an agent with a plugin that handles its settings: one entry, the path of the plugin."""

from __future__ import annotations

import posixpath
from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.installation import Address, Installed
from agent_hooks.bridges.base.payloads import BridgeError
from agent_hooks.errors import shown


class PluginSettings(Bridge, ABC):
    """A bridge whose settings name the plugin in a list of paths, as data: the text is the business of `installs`.

    `listed`: the path of this list in the settings.
    `scheme`: the text before the plugin's path there.
    """

    listed: tuple[str, ...]
    scheme: str = ""

    def install(
        self,
        settings: Mapping[str, Any],
        command: Sequence[str],
        events: Collection[str],
        address: Address | None = None,
    ) -> dict[str, Any]:
        """Return the settings with the plugin's path; `command` is this path alone.  Raises `BridgeError`.

        A plugin gets all events of its bridge, so `events` is not used.
        """
        path = f"{self.scheme}{command[-1]}"
        found = self._list(settings)
        ours = [each for each in found if self._is_ours(each)]
        if ours == [path]:
            return self.with_more(settings)
        kept = [each for each in found if each not in ours]
        return self.with_more(_with(settings, self.listed, [*kept, path]))

    def uninstall(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without the plugin's path, and without a list that held nothing else."""
        found = self._list(settings)
        kept = [each for each in found if not self._is_ours(each)]
        settings = self.without_more(settings)
        return _with(settings, self.listed, kept) if len(kept) < len(found) else dict(settings)

    def installed(self, settings: Mapping[str, Any]) -> Sequence[Installed]:
        """Return an entry for each event, with the plugin's path as its command.  Settings of a wrong form have none."""
        try:
            found = self._list(settings)
        except BridgeError:
            return []
        path = next((each.removeprefix(self.scheme) for each in found if self._is_ours(each)), None)
        return [] if path is None else [Installed(row.name, (path,), fails_closed=True) for row in self.describe()]

    def with_more(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings with all that the agent needs beside the path, by default nothing."""
        return dict(settings)

    def without_more(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without all that `with_more` adds."""
        return dict(settings)

    def _list(self, settings: Mapping[str, Any]) -> list[Any]:
        value: Any = settings
        for number, key in enumerate(self.listed):
            if not isinstance(value, Mapping):
                raise BridgeError(f"{'.'.join(self.listed[:number])} must be an object, not {shown(value)}")
            value = value.get(key, [] if key == self.listed[-1] else {})
        if not isinstance(value, list):
            raise BridgeError(f"{'.'.join(self.listed)} must be a list, not {shown(value)}")
        return value

    def _is_ours(self, entry: Any) -> bool:
        name = posixpath.basename(entry) if isinstance(entry, str) else ""
        return name == f"agent-hooks-{self.name}.mjs"


def _with(settings: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return settings with a value at a path; an empty value takes its key away, and so does an object left empty."""
    key, *rest = path
    inner = _with(settings.get(key, {}), rest, value) if rest else value
    if inner:
        return {**settings, key: inner}
    return {each: there for each, there in settings.items() if each != key}
