"""notify: rings the terminal's bell when the agent is done and has worked for a while."""

from __future__ import annotations

import sys
import time

from agent_hooks import AgentEnd, AgentStart, HookAPI, HookContext

# Shorter work is not worth a sound.
SECONDS = 20


def register(api: HookAPI) -> None:
    """Subscribe the handlers."""
    began = time.monotonic()

    @api.on("agent_start")
    async def begin(event: AgentStart, ctx: HookContext) -> None:
        """Note when the work on a prompt begins."""
        nonlocal began
        began = time.monotonic()

    @api.on("agent_end")
    async def notify(event: AgentEnd, ctx: HookContext) -> None:
        """Ring, and show a line; put your own program here: `await ctx.exec("notify-send", ["done"])`."""
        seconds = time.monotonic() - began
        if seconds >= SECONDS:
            ctx.ui.notify(f"done after {seconds:.0f} s")
            if sys.stderr.isatty():
                sys.stderr.write("\a")
                sys.stderr.flush()
