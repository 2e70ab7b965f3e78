"""The turn of a call: the checkpoint before it, the files that it changed, and the command that brings them back.

The record has them.  The store of the working tree tells whether the files before the turn are still there; it is read
and never written here.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

from agent_hooks.checkpoints.marks import has_turn
from agent_hooks.records.lines import Decision, Line, Result, Turn
from agent_hooks.turn_notes import store_of


def turn_of(line: Line | None, result: Result | None, saved: Sequence[Turn]) -> dict[str, Any] | None:
    """Return the turn of a call; `None` if no record has the call.

    `saved`: the lines that were written when the files were saved after the turn, one for each working tree.
    """
    if line is None:
        return None
    checkpoint = saved[0].checkpoint if saved else "" if result is None else result.checkpoint
    commands = [_command(each) for each in saved if each.files and _is_kept(each)]
    return {
        "index": line.turn,
        "checkpoint": checkpoint or None,
        "files": [name for at, each in enumerate(saved) for name in _names(each, is_first=not at)],
        "more": sum(each.more for each in saved),
        "ended": bool(saved),
        # Older records do not say it.
        "mayBeIts": not saved
        or not all(each.marked for each in saved)
        or (isinstance(line, Decision) and line.may_change),
        "bringBack": " && ".join(commands) or None,
    }


def _names(saved: Turn, *, is_first: bool) -> Sequence[str]:
    """Return the files of a working tree; those of a second one have its directory in front."""
    return saved.files if is_first else [os.path.join(saved.tree, name) for name in saved.files]


def _is_kept(saved: Turn) -> bool:
    try:
        return os.path.isdir(saved.tree) and has_turn(store_of(saved.tree), saved.turn_id, saved.time.timestamp())
    except OSError:
        return False


def _command(saved: Turn) -> str:
    # Of this turn alone: files that changed since stay, and a later edit of the same file is kept beside.
    return shlex.join(["agent-hooks", "undo", "--turn", saved.turn_id, "--cwd", saved.tree])
