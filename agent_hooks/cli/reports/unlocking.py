"""How an unlocking and its edits are told to the person."""

from __future__ import annotations

import time
from collections.abc import Iterable

from agent_hooks.cli.screen.wording import short
from agent_hooks.errors import count
from agent_hooks.trust.contents import Edit
from agent_hooks.trust.unlocked import Unlocked


def sentence(state: Unlocked) -> str:
    """Return which directories are unlocked, and until when."""
    until = time.strftime("%H:%M:%S", time.localtime(state.until))
    return f"the agent may change hooks and settings in {', '.join(map(short, state.directories))} until {until}"


def summary(changed: Iterable[Edit]) -> str:
    """Return how many files were changed, and which."""
    paths = [short(each.path) for each in changed]
    return f"{count(len(paths), 'file')} changed while unlocked{': ' if paths else ''}{', '.join(paths)}"
