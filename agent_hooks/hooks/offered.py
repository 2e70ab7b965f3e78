"""The hooks that installed packages offer, by the entry-point group `agent_hooks`.

Only the metadata of the packages is read; nothing of them is imported.
"""

from __future__ import annotations

import re
from importlib.metadata import distributions

from msgspec import Struct

from agent_hooks.hook_entries import MODULE, module_path

GROUP = "agent_hooks"


class OfferedHook(Struct, frozen=True):
    """A hook that a package offers: its name, the entry for `hooks` in the settings, the package and its version.

    `path`: the file, or the directory of a package; `None` when the module is not there.
    """

    name: str
    entry: str
    package: str
    version: str
    path: str | None


def offered_hooks() -> list[OfferedHook]:
    """Return the hooks that the packages of this Python offer, sorted by package and name."""
    found = {
        (each.metadata["Name"] or "", point.name): OfferedHook(
            point.name,
            f"{MODULE}{_module(point.value)}",
            each.metadata["Name"] or "",
            each.version,
            module_path(_module(point.value)),
        )
        for each in distributions()
        for point in each.entry_points
        if point.group == GROUP
    }
    return [found[key] for key in sorted(found)]


def _module(value: str) -> str:
    """Return the module of an entry point; an object behind a colon, `register` say, is no part of it."""
    return re.split(r"[:\[]", value, maxsplit=1)[0].strip()
