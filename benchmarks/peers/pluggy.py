"""pluggy: calls plain functions, without deadlines, and collects their results."""

from __future__ import annotations

import pluggy

from benchmarks.harness import Side, unrolled
from benchmarks.peers.common import measure

hookspec = pluggy.HookspecMarker("bench")
hookimpl = pluggy.HookimplMarker("bench")


class Spec:
    """The one hook."""

    @hookspec
    def turn_end(self, event, ctx):
        """Do nothing."""


class Plugin:
    """An implementation without an opinion."""

    @hookimpl
    def turn_end(self, event, ctx):
        return None


def side(count: int) -> Side:
    """Return a side that calls that many implementations."""
    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(Spec)
    for _ in range(count):
        manager.register(Plugin())
    return unrolled("hook(event=e, ctx=c)", hook=manager.hook.turn_end, e=object(), c=object())


measure("pluggy", {"dispatch": {1: side(1), 10: side(10)}})
