"""`agent-hooks redo`: bring the changes back that the last undo took back."""

from __future__ import annotations

import anyio
import click

from agent_hooks import checkpoints
from agent_hooks.checkpoints import CheckpointError
from agent_hooks.cli.lifetime import FAILED
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.taking_back import take_back_asked
from agent_hooks.trust.ancestors import refuse_below_an_agent


@click.command("redo")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@cwd_option
@click.pass_context
def command(ctx: click.Context, yes: bool, cwd: str) -> None:
    """Bring the changes back that the last `agent-hooks undo` took back. A second redo takes them back again.

    Later edits are kept under another name. To take back a restore: agent-hooks checkpoints undo
    """
    refuse_below_an_agent("redo")
    with working("comparing the files with their checkpoints"):
        plan = anyio.run(checkpoints.plan_redo, cwd)
    if plan is None:
        raise CheckpointError("nothing to redo: no undo has changed files here")
    if not take_back_asked(cwd, plan, yes=yes):
        ctx.exit(FAILED)
