"""The loaded hooks of a session, with everything that answers its happenings."""

from __future__ import annotations

from msgspec import Struct

from agent_hooks.bridges.driver import Bridging
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.sources import Sources


class Opened(Struct, frozen=True):
    """The hooks that were loaded for a session; `news`: texts for the person about the loading."""

    runner: HookRunner
    bridging: Bridging
    sources: Sources
    news: tuple[str, ...] = ()
