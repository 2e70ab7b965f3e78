"""The message to the person that no resident server can be started, so that each event has a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable

from agent_hooks.bridges.base import Bridge
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.server.client import ALONE

_MOST = 5
"""The number of hooks that are named."""


def was_begun_alone() -> bool:
    """Return whether the installed client began this process because no server can be started.

    The client says so by a variable.  It is removed, so that the programs that hooks start do not get it.
    """
    return os.environ.pop(ALONE.decode(), None) is not None


def notice(bridge: Bridge, project: str, hooks: Iterable[LoadedHook]) -> str:
    """Return the message: the reason, the hooks that lose their state, and the remedy."""
    paths = [os.path.relpath(hook.path, project) for hook in hooks]
    named = ", ".join(paths[:_MOST]) + (f" and {len(paths) - _MOST} more" if len(paths) > _MOST else "")
    state = f", and these hooks keep no state between events: {named}" if paths else ""
    reason = last_words(project)
    return (
        f"agent_hooks: no resident server can be started ({reason}), so each event has a process of its own{state}; "
        f"to check: agent-hooks doctor {bridge.name}"
    )


def last_words(project: str) -> str:
    """Return the last line in the log of a project's server."""
    # Imported here, because few processes need it.
    from agent_hooks.server.control import place_of
    from agent_hooks.ui.harmless import harmless

    try:
        with open(f"{place_of(project)}.log", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    except OSError:
        lines = []
    return harmless(lines[-1][:200]) if lines else "it has left no log"
