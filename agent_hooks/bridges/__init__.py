"""Bridges: codecs between another agent's hook protocol and our events.

`BRIDGES` is the table of all bridges.  A bridge's module is imported when the bridge is first used.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from agent_hooks.bridges.base import Bridge

__all__ = ["BRIDGES", "open_bridge"]

BRIDGES: dict[str, tuple[str, str]] = {"claude-code": ("agent_hooks.bridges.claude_code", "ClaudeCode")}
"""The name of each bridge, as on the command line → its module and its class."""


# A bridge has no state, so one object serves all callers.
@cache
def open_bridge(name: str) -> Bridge:
    """Return the bridge of that name.  Raises `KeyError` if `BRIDGES` lacks it."""
    module, kind = BRIDGES[name]
    return getattr(import_module(module), kind)()  # type: ignore[no-any-return]  # a row of the table
