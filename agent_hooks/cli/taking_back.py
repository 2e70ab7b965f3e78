"""Change the files back after a question: for `undo`, `redo` and `checkpoints restore`."""

from __future__ import annotations

import anyio

from agent_hooks import checkpoints
from agent_hooks.checkpoints import CheckpointError, UndoPlan
from agent_hooks.cli.screen.turns import nothing_to_undo, plan_lines, report_undone, undo_question
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.streams import can_show_question, echo, is_quiet, tell
from agent_hooks.cli.trusting import confirm
from agent_hooks.errors import count


def take_back_asked(cwd: str, plan: UndoPlan, *, yes: bool) -> bool:
    """Show a plan, ask unless `yes`, and carry it out.  Return whether all of it was done."""
    if not (yes and is_quiet()):
        for line in plan_lines(plan):
            echo(line)
        if plan.damaged:
            echo(f"the store was damaged: {count(plan.damaged, 'state')} of the files cannot be read", err=True)
    if not plan.paths:
        tell(nothing_to_undo(plan))
        return True
    if not yes and not agreed(undo_question(plan), "take these turns back"):
        return False
    with working("taking back"):
        done = anyio.run(checkpoints.take_back, cwd, plan)
    return report_undone(done)


def agreed(question: str, doing: str) -> bool:
    """Ask before files change.  `doing` says what `--yes` would do.  Raises `CheckpointError` without a terminal."""
    if not can_show_question():
        raise CheckpointError(f"nothing was changed. Without a terminal, say --yes to {doing}")
    if confirm(question):
        return True
    tell("nothing was changed")
    return False
