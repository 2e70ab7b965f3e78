"""`agent-hooks undo`: take back what the last turns of agents changed in a working tree."""

from __future__ import annotations

from functools import partial

import anyio
import click

from agent_hooks import checkpoints
from agent_hooks.cli.lifetime import FAILED
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.taking_back import take_back_asked
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
    if not take_back_asked(cwd, plan, yes=yes):
        ctx.exit(FAILED)
