"""The signs of life of plugins: each plugin writes one when its agent loads it.

An agent that cannot load a plugin goes on without it, so that no call is judged.  A missing or an old sign of life shows
that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from agent_hooks.bridges.base import Bridge
from agent_hooks.installs.generated import heartbeat_path

if TYPE_CHECKING:
    from pathlib import Path


class Heartbeat(Struct, frozen=True):
    """The last load of a plugin.

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
    """Return the last sign of life of a bridge's plugin; `None` without one, or if it cannot be read."""
    try:
        return msgspec.json.decode(heartbeat_path(bridge, home).read_bytes(), type=Heartbeat)
    except (OSError, msgspec.DecodeError):
        return None
