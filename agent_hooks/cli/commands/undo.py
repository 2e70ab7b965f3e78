"""`agent-hooks undo`: take back what the last turns of agents changed in a working tree."""

from __future__ import annotations

from functools import partial

import anyio
import click

from agent_hooks import checkpoints
from agent_hooks.checkpoints import CheckpointError
from agent_hooks.cli.lifetime import FAILED
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.screen.turns import nothing_to_undo, plan_lines, undo_question
from agent_hooks.cli.screen.undone import report_undone
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.streams import can_show_question, echo, is_quiet, tell
from agent_hooks.cli.trusting import confirm
from agent_hooks.errors import count
from agent_hooks.trust.ancestors import refuse_below_an_agent


@click.command("undo")
@click.argument("turns", required=False, type=click.IntRange(min=1), metavar="[N]")
@click.option("--turn", metavar="ID", help="Only the turn with this id, which `agent-hooks look` shows.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@cwd_option
@click.pass_context
def command(ctx: click.Context, turns: int | None, turn: str | None, yes: bool, cwd: str) -> None:
    """Take back what the last turn, or the last N, changed in this working tree.

    The turns of all sessions and agents count. Later edits, yours or another agent's, are kept beside. Files that git
    ignores, and the repository itself, are not touched.
    """
    refuse_below_an_agent("undo")
    if turns is not None and turn is not None:
        raise click.UsageError("either N or --turn ID")
    with working("comparing the files with their checkpoints"):
        plan = anyio.run(partial(checkpoints.plan_undo, cwd, turns or 1, only=() if turn is None else (turn,)))
    if not (yes and is_quiet()):
        _show(plan)
    if not plan.paths:
        tell(nothing_to_undo(plan))
        return
    if not yes:
        if not can_show_question():
            raise CheckpointError("nothing was changed; without a terminal, say --yes to take these turns back")
        if not confirm(undo_question(plan)):
            tell("nothing was changed")
            ctx.exit(FAILED)
    with working("taking back"):
        done = anyio.run(checkpoints.take_back, cwd, plan)
    if not report_undone(done):
        ctx.exit(FAILED)


def _show(plan: checkpoints.UndoPlan) -> None:
    for line in plan_lines(plan):
        echo(line)
    if plan.damaged:
        echo(f"the store was damaged: {count(plan.damaged, 'state')} of the files cannot be read", err=True)
