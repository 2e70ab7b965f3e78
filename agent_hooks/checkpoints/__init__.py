"""Save the files of a working tree, and take them back: what a hook needs to make branching back safe.

    from agent_hooks import checkpoints

    saved = await checkpoints.create(ctx.cwd, ctx.session_id, event.entry_index)
    done = await checkpoints.restore(ctx.cwd, saved)    # untracked files too; what git ignores stays
    await checkpoints.undo(ctx.cwd, ctx.session_id)

Kept as commits that no branch leads to, under `refs/agent-hooks/`; needs the git command and a working tree.  Index,
stash, HEAD and branches are never touched.  Not loaded by `import agent_hooks`.
Above: hooks, cli.  Below: process, settings, errors.
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
