"""Bridges: codecs between another agent's hook protocol and our events.  `BRIDGES` is the table, imported on use.

Above: bridging, testing, cli.  Below: base, content, events.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from agent_hooks.bridges.base import Bridge

__all__ = ["BRIDGES", "open_bridge"]

# name, as on the command line → module, class
BRIDGES: dict[str, tuple[str, str]] = {"claude-code": ("agent_hooks.bridges.claude_code", "ClaudeCode")}


@cache  # it has no state
def open_bridge(name: str) -> Bridge:
    """Return the bridge of that name; raises `KeyError` for one that is not in `BRIDGES`."""
    module, kind = BRIDGES[name]
    return getattr(import_module(module), kind)()  # type: ignore[no-any-return]  # by the table
