"""The modes in which an agent runs; each module has `async def run(start) -> int` and is imported when it is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from agent_hooks.cli.modes.base import Start

MODES = {
    "print": "agent_hooks.cli.modes.print",
    "rpc": "agent_hooks.cli.modes.rpc",
    "interactive": "agent_hooks.cli.modes.interactive",
}


def mode(name: str) -> Callable[[Start], Awaitable[int]]:
    """Return the function that runs an agent in a mode and returns the exit code."""
    member: Any = import_module(MODES[name])
    return member.run  # type: ignore[no-any-return]  # every mode has `run`
