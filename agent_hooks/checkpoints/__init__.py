"""Save the files of a working tree and restore them, or take back what the turns of agents changed.

    from agent_hooks import checkpoints

    saved = await checkpoints.create(ctx.cwd, ctx.session_id, event.entry_index)
    done = await checkpoints.restore(ctx.cwd, saved)
    await checkpoints.undo(ctx.cwd, ctx.session_id)

    plan = await checkpoints.plan_undo(ctx.cwd, turns=1)
    done = await checkpoints.take_back(ctx.cwd, plan)

A checkpoint holds tracked and untracked files; files that git ignores are neither saved nor restored.  It is kept below
the agent home, and needs the git command and a working tree.  The repository is never changed.  `import agent_hooks` does
not load this module.
"""

from agent_hooks.checkpoints.git import CheckpointError
from agent_hooks.checkpoints.restore import Change, Diff, Kept, Restored, diff, restore, undo
from agent_hooks.checkpoints.snapshot import Skipped, printable
from agent_hooks.checkpoints.store import MAX_FILE_SIZE, Checkpoint, create, find_for_branch, ignored, inherit, prune
from agent_hooks.checkpoints.store import list_checkpoints as list  # noqa: A004  # read as checkpoints.list(...)
from agent_hooks.checkpoints.turns import Turn, session_diff, turn_diff, turns
from agent_hooks.checkpoints.undoing import REDO, Undone, UndoPlan, plan_redo, plan_undo, take_back

__all__ = [
    "MAX_FILE_SIZE",
    "REDO",
    "Change",
    "Checkpoint",
    "CheckpointError",
    "Diff",
    "Kept",
    "Restored",
    "Skipped",
    "Turn",
    "UndoPlan",
    "Undone",
    "create",
    "diff",
    "find_for_branch",
    "ignored",
    "inherit",
    "list",
    "plan_redo",
    "plan_undo",
    "printable",
    "prune",
    "restore",
    "session_diff",
    "take_back",
    "turn_diff",
    "turns",
    "undo",
]
