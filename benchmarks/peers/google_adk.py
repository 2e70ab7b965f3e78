"""google-adk: its plugin manager before a tool call, without deadlines; a plugin that answers ends it."""

from __future__ import annotations

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.plugin_manager import PluginManager

from benchmarks.harness import Side, unrolled
from benchmarks.peers.common import measure


class Plugin(BasePlugin):
    """A plugin without an opinion."""

    async def before_tool_callback(self, *, tool, tool_args, tool_context):
        return None


def side(count: int) -> Side:
    """Return a side that asks that many plugins."""
    manager = PluginManager([Plugin(f"plugin {number}") for number in range(count)])
    return unrolled(
        "await ask(tool=t, tool_args=a, tool_context=c)",
        ask=manager.run_before_tool_callback,
        t=object(),
        a={"command": "ls"},
        c=object(),
    )


measure("google-adk", {"dispatch": {1: side(1), 10: side(10)}})
