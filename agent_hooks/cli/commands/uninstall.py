"""`agent-hooks uninstall`: the way back from `install`."""

from __future__ import annotations

import os

import click

from agent_hooks.bridges import open_bridge
from agent_hooks.cli.commands.install import diff_of, target_options, uninstalling
from agent_hooks.cli.commands.serve import let_look
from agent_hooks.cli.main import FAILED
from agent_hooks.cli.setup import short
from agent_hooks.cli.stderr import complain
from agent_hooks.installs.places import places, targets


@click.command("uninstall")
@target_options
@click.pass_context
def command(ctx: click.Context, agent: str, target: str | None, dry_run: bool) -> None:
    """Take the entries of `agent-hooks install` out of AGENT's settings, wherever they are; everything else stays."""
    bridge = open_bridge(agent)
    known = targets(bridge, os.getcwd())
    asked = list(known) if target is None else [target]
    paths = {os.path.realpath(known[name].path) for name in asked}
    found = [place for place in places(bridge, os.getcwd()) if os.path.realpath(place.target.path) in paths]
    for place in found:
        if place.problem:
            complain(place.problem)
            continue
        change = uninstalling(bridge, place)
        click.echo(diff_of(bridge, change))
        if not dry_run:
            change.make()
            let_look(os.getcwd())
        path = short(place.target.path)
        gone = "; nothing else was in it, so it is gone" if change.after is None else ""
        click.echo(f"{path}: {'would be ' * dry_run}uninstalled{gone}")
        if os.path.lexists(change.backup) and not change.spent:
            click.echo(f"it was changed since; how it was before is in {short(change.backup)}")
    if not found:
        click.echo(f"{', '.join(short(known[name].path) for name in asked)}: nothing of agent_hooks is there")
    ctx.exit(FAILED if any(place.problem for place in found) else 0)
