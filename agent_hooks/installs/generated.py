"""The places of the generated files that other agents run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from agent_hooks.bridges.base import Bridge
from agent_hooks.settings import agent_home

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORY = "bridges"
"""The directory of the generated files, in the agent home."""


def stub_path(bridge: Bridge, home: Path | None = None) -> Path:
    """Return the path of the generated file of a bridge: `bridges/agent-hooks-<name>.py` in the agent home."""
    # Imported here, because the process of one event needs no path.
    from pathlib import Path

    return Path(home or agent_home(), DIRECTORY, f"agent-hooks-{bridge.name}.py")


def plugin_path(bridge: Bridge, home: Path | None = None) -> Path:
    """Return the path of the generated plugin of a bridge: `bridges/agent-hooks-<name>.mjs` in the agent home."""
    return stub_path(bridge, home).with_suffix(".mjs")


def heartbeat_path(bridge: Bridge, home: Path | None = None) -> Path:
    """Return the path of the file that a plugin writes when its agent loads it."""
    return stub_path(bridge, home).with_suffix(".loaded")


class Heartbeat(Struct, frozen=True):
    """The sign of life that a plugin writes when its agent loads it.

    An agent that cannot load a plugin works without it, so that no call is judged.  A missing or an old sign shows that.

    `version`: the version of agent_hooks that wrote the plugin.
    `time`: seconds since the epoch.
    `pid`: the agent's process.
    `file`: the plugin's path.
    `error`: the traceback, if the plugin could not connect itself with the agent.
    """

    version: str
    time: float
    pid: int
    file: str
    error: str | None = None


def last_heartbeat(bridge: Bridge, home: Path | None = None) -> Heartbeat | None:
    """Read the heartbeat file of a bridge's plugin. Return `None` if it is missing or unreadable."""
    try:
        return msgspec.json.decode(heartbeat_path(bridge, home).read_bytes(), type=Heartbeat)
    except (OSError, msgspec.DecodeError):
        return None
