"""Bridges: codecs between another agent's hook protocol and our events.

`BRIDGES` is the table of all bridges.  A bridge's module is imported when the bridge is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from agent_hooks.bridges.base import Bridge
from agent_hooks.errors import describe, log

__all__ = ["BRIDGES", "GUESTS", "guests", "open_bridge", "usable_bridges"]

BRIDGES: dict[str, tuple[str, str]] = {
    "claude-code": ("agent_hooks.bridges.claude_code", "ClaudeCode"),
    "codex": ("agent_hooks.bridges.codex", "Codex"),
    "copilot-cli": ("agent_hooks.bridges.copilot_cli", "CopilotCli"),
    "cursor": ("agent_hooks.bridges.cursor", "Cursor"),
    "gemini-cli": ("agent_hooks.bridges.gemini_cli", "GeminiCli"),
    "openclaw": ("agent_hooks.bridges.openclaw", "OpenClaw"),
    "opencode": ("agent_hooks.bridges.opencode", "OpenCode"),
    "pi": ("agent_hooks.bridges.pi", "Pi"),
    "qwen-code": ("agent_hooks.bridges.qwen_code", "QwenCode"),
}
"""The name of each bridge, as on the command line → its module and its class."""


GUESTS: dict[str, dict[str, tuple[str, str]]] = {
    "claude-code": {
        "COPILOT_CLI": ("agent_hooks.bridges.copilot_cli", "CopilotAsClaude"),
        "CURSOR_VERSION": ("agent_hooks.bridges.cursor", "CursorAsClaude"),
    },
}
"""The agents that run the entries of another agent, by that agent's name.

Each row is a variable that the running agent sets → the module and the class of the bridge for the events it sends there.
"""


# A bridge has no state, so one object serves all callers.
@cache
def open_bridge(name: str) -> Bridge:
    """Return the bridge of that name.  Raises `KeyError` if `BRIDGES` lacks it."""
    return _opened(*BRIDGES[name])


def guests(name: str, environment: Mapping[str, str]) -> list[Bridge]:
    """Return the bridges of the agents that may run an entry of the agent `name` in this environment."""
    return [_opened(*row) for variable, row in GUESTS.get(name, {}).items() if environment.get(variable)]


@cache
def _opened(module: str, kind: str) -> Bridge:
    return getattr(import_module(module), kind)()  # type: ignore[no-any-return]  # a row of a table


@cache
def usable_bridges() -> tuple[Bridge, ...]:
    """Return all bridges but those whose module cannot be imported, which are logged: the other agents go on."""
    found = list[Bridge]()
    for name in BRIDGES:
        try:
            found.append(open_bridge(name))
        # The files of this package may be damaged, or of two versions during an update.
        except Exception as exc:
            log().error("the bridge to %s cannot be used: %s", name, describe(exc))
    return tuple(found)
