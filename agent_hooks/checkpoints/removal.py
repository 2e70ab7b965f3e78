"""The process that removes old and surplus checkpoints: `python -m agent_hooks.checkpoints.removal DIRECTORY`."""

from __future__ import annotations

import os
import sys

import anyio

from agent_hooks.checkpoints.git import CheckpointError, open_worktree
from agent_hooks.checkpoints.pruning import remove_in_background
from agent_hooks.errors import log


async def remove(directory: str) -> None:
    """Remove old and surplus checkpoints in all stores, first in that of the working tree of a directory."""
    try:
        await remove_in_background(await open_worktree(directory))
    except CheckpointError as exc:
        log().warning("%s", exc)


if __name__ == "__main__":
    anyio.run(remove, sys.argv[1])
    # A thread that still walks through a store holds nothing that has to be written.
    os._exit(0)
