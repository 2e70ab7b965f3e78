"""A turn of an agent in one line, for a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agent_hooks.checkpoints import Turn, printable
from agent_hooks.errors import count

# The ignored paths that are named.
_MOST = 10


def when(seconds: float) -> str:
    """Return a time for a person, in the time zone of this machine."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def turn_line(turn: Turn) -> str:
    """Return number, time, agent and prompt of a turn, and how many files it changed."""
    number = "" if turn.number is None else f"{turn.number}  "
    prompt = f"  {turn.work.prompt}" if turn.work.prompt else ""
    return f"{number}{when(turn.created)}  {turn.work.agent}{prompt}: {count(len(turn.paths), 'file')}"


def not_saved(ignored: Sequence[str]) -> str:
    """Return a line with the paths that git ignores, which no checkpoint holds."""
    names = ", ".join(map(printable, ignored[:_MOST]))
    more = f" and {count(len(ignored) - _MOST, 'more path')}" if len(ignored) > _MOST else ""
    return f"not saved, because git ignores them: {names}{more}"
