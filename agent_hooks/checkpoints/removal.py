"""The process that removes old and surplus checkpoints.

Run it as `python -m agent_hooks.checkpoints.removal DIRECTORY [finish]`.
"""

from __future__ import annotations

import os
import sys

import anyio

from agent_hooks.checkpoints.git import CheckpointError, open_worktree
from agent_hooks.checkpoints.pruning import FINISH, LIMIT, remove_in_background
from agent_hooks.checkpoints.snapshot import rules, take
from agent_hooks.checkpoints.store import MAX_FILE_SIZE
from agent_hooks.errors import log


async def remove(directory: str, finish: str = "") -> None:
    """Remove old and surplus checkpoints in all stores, beginning with the working tree around a directory.

    `finish`: the present files are saved before, because a checkpoint took too long.  That may take up to `LIMIT`.
    """
    try:
        worktree = await open_worktree(directory)
        if finish == FINISH:
            worktree.is_hurried = False
            with anyio.move_on_after(LIMIT):
                async with worktree.locked(wait=False):
                    await take(worktree, rules(worktree, directory, MAX_FILE_SIZE, ()))
        await remove_in_background(worktree)
    except CheckpointError as exc:
        log().warning("%s", exc)


if __name__ == "__main__":
    anyio.run(remove, sys.argv[1], "".join(sys.argv[2:]))
    # A thread that still walks through a store holds nothing that has to be written.
    os._exit(0)
