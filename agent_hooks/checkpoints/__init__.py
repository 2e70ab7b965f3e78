"""Save the files of a working tree and restore them, so that a hook can restore them when the person branches back.

    from agent_hooks import checkpoints

    saved = await checkpoints.create(ctx.cwd, ctx.session_id, event.entry_index)
    done = await checkpoints.restore(ctx.cwd, saved)
    await checkpoints.undo(ctx.cwd, ctx.session_id)

A checkpoint holds tracked and untracked files; files that git ignores are neither saved nor restored.  It is a commit
under `refs/agent-hooks/`, on no branch, and needs the git command and a working tree.  Index, stash, HEAD and branches
are never touched.  `import agent_hooks` does not load this module.
"""

from agent_hooks.checkpoints.git import CheckpointError
from agent_hooks.checkpoints.restore import Change, Diff, Restored, diff, restore, undo
from agent_hooks.checkpoints.snapshot import Skipped, printable
from agent_hooks.checkpoints.store import MAX_FILE_SIZE, Checkpoint, create, find_for_branch, inherit, prune
from agent_hooks.checkpoints.store import list_checkpoints as list  # noqa: A004  # read as checkpoints.list(...)

__all__ = [
    "MAX_FILE_SIZE",
    "Change",
    "Checkpoint",
    "CheckpointError",
    "Diff",
    "Restored",
    "Skipped",
    "create",
    "diff",
    "find_for_branch",
    "inherit",
    "list",
    "printable",
    "prune",
    "restore",
    "undo",
]
