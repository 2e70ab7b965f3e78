"""`agent-hooks untrust`: forget the approvals of a project, so that nothing of it runs."""

from __future__ import annotations

import os

import click

from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.proving import prove_loosening
from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.streams import tell
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.trust.manifest import TrustError
from agent_hooks.trust.policy import Trust, judge
from agent_hooks.trust.store import TrustStore


@click.command("untrust")
@click.argument("projects", nargs=-1, metavar="[PROJECT]...")
@cwd_option
@click.pass_context
def command(ctx: click.Context, projects: tuple[str, ...], cwd: str) -> None:
    """Forget all approvals of the projects here, or of each PROJECT, also one whose directory is gone.

    Their hooks and settings end at once, also in a session that runs.
    """
    refuse_below_an_agent("untrust")
    trust = Trust()
    store = trust.store()
    if store.problem is not None:
        raise TrustError(store.problem)
    named = [os.path.realpath(each) for each in projects] or [each.project for each in trust.sources(cwd).projects]
    known = [(project, key) for project in named for key in _keys(store, project)]
    if known:
        prove_loosening("untrust", *dict.fromkeys(project for project, _ in known))
    for project, key in known:
        store.remove(key)
        tell(f"{one_line(project)}: no longer approved; nothing of it is run or obeyed")
    for project in named:
        if project not in [each for each, _ in known]:
            tell(f"{one_line(project)}: was not approved")
    if not named:
        tell("no project is here")
    ctx.exit(OK if known else FAILED)


def _keys(store: TrustStore, project: str) -> list[str]:
    """Return the keys of a directory: its own, and those of a project that was there before."""
    here = [judge(store, project).key]
    before = [key for key, entry in store.entries.items() if entry.root == project]
    return [key for key in dict.fromkeys([*here, *before]) if key in store.entries]
