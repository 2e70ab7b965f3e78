"""What there is to answer a session's happenings with.  Above: sessions, cli.  Below: bridging, sources."""

from __future__ import annotations

from msgspec import Struct

from agent_hooks.bridges.driver import Bridging
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.sources import Sources


class Opened(Struct, frozen=True):
    """Hooks that were loaded for a session, and what there is to tell the person about that."""

    runner: HookRunner
    bridging: Bridging
    sources: Sources
    news: tuple[str, ...] = ()
