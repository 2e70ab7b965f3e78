"""The turn of a call: the checkpoint before it, the files that it changed, and the command that brings them back.

They come from the store of the working tree, which is read and never written here.
"""

from __future__ import annotations

import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio

from agent_hooks.checkpoints.git import CheckpointError, Worktree, open_worktree
from agent_hooks.checkpoints.marks import Mark, read_marks
from agent_hooks.checkpoints.store import kept
from agent_hooks.records.lines import Line

# Files of a turn that are named.
_MOST = 200
# Seconds by which the record of a call may stand before the mark of its turn.
_SLACK = 1.0


def turn_of(line: Line | None, time: float) -> dict[str, Any] | None:
    """Return the turn of a call by its record, at a time in milliseconds; `None` if no record has it."""
    if line is None:
        return None
    found: dict[str, Any] = {"index": line.turn, "checkpoint": None, "files": [], "bringBack": None}
    directory = line.cwd or line.project
    if not directory or not os.path.isdir(directory):
        return found
    try:
        # In a thread of its own, because the caller's may have an event loop.
        with ThreadPoolExecutor(1) as pool:
            return found | pool.submit(anyio.run, _read, directory, line.session, line.agent, time / 1000).result()
    except CheckpointError:
        # There is no working tree, so there are no checkpoints.
        return found


async def _read(cwd: str, session: str, agent: str, time: float) -> dict[str, Any]:
    worktree = await open_worktree(cwd)
    if not worktree.has_store:
        return {}
    marks = [mark for mark in read_marks(worktree) if (mark.work.session_id, mark.work.agent_id) == (session, agent)]
    begin = max(
        (mark for mark in marks if mark.kind == "begin" and mark.created <= time + _SLACK),
        key=lambda mark: mark.created,
        default=None,
    )
    if begin is None:
        return {}
    end = next((mark for mark in marks if mark.kind == "end" and mark.work.turn == begin.work.turn), None)
    if end is not None and end.created < time - _SLACK:
        # The call is of a later turn, which changed nothing.
        return {}
    files = await _files(worktree, begin, end)
    saved = next((each for each in await kept(worktree, session) if each.turn == begin.work.turn), None)
    name = None if saved is None else saved.name
    # Of this turn alone: files that changed since stay, and a later edit of the same file is kept beside.
    words = ["agent-hooks", "undo", "--turn", begin.work.turn, "--cwd", worktree.top]
    return {"checkpoint": name, "files": files, "bringBack": shlex.join(words) if files else None}


async def _files(worktree: Worktree, begin: Mark, end: Mark | None) -> list[str]:
    """Return the files that differ between the marks of a turn, in its working tree."""
    if end is None or begin.tree == end.tree:
        return []
    options = ("-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    out = (await worktree.git("diff-tree", *options, begin.tree, end.tree)).need()
    return [os.fsdecode(name) for name in out.split(b"\0") if name][:_MOST]
