"""`agent-hooks uninstall`: take the entries of `install` out again."""

from __future__ import annotations

import os

import click

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import installation_options
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.streams import complain
from agent_hooks.installs.places import Installation, installations, targets
from agent_hooks.installs.plan import check_links, diff_of, uninstalling
from agent_hooks.server.control import refresh_ports


@click.command("uninstall")
@installation_options
@click.pass_context
def command(ctx: click.Context, agent: str, target: str | None, dry_run: bool) -> None:
    """Take the entries of `agent-hooks install` out of AGENT's settings, wherever they are; everything else stays."""
    bridge, cwd = open_bridge(agent), os.getcwd()
    known = targets(bridge, cwd)
    asked = list(known) if target is None else [target]
    paths = {os.path.realpath(known[name].path) for name in asked}
    found = [each for each in installations(bridge, cwd) if os.path.realpath(each.target.path) in paths]
    for each in found:
        if each.problem:
            complain(each.problem)
        else:
            _uninstall(bridge, each, cwd, dry_run=dry_run)
    if not found:
        click.echo(f"{', '.join(short(known[name].path) for name in asked)}: nothing of agent_hooks is there")
    ctx.exit(FAILED if any(each.problem for each in found) else OK)


def _uninstall(bridge: Bridge, installation: Installation, cwd: str, *, dry_run: bool) -> None:
    check_links(bridge, installation.target, cwd)
    planned = uninstalling(bridge, installation)
    click.echo(diff_of(bridge, planned))
    if not dry_run:
        planned.make()
        refresh_ports(cwd)
    gone = "; the file held nothing else, so it is removed" if planned.after is None else ""
    click.echo(f"{short(installation.target.path)}: {'would be ' * dry_run}uninstalled{gone}")
    if os.path.lexists(planned.backup) and not planned.spent:
        click.echo(f"the file was changed since; its text from before the installation is in {short(planned.backup)}")
