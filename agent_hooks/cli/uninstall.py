"""`agent-hooks uninstall`: the way back from `install`."""

from __future__ import annotations

import click

from agent_hooks.cli.install import target_options, uninstall_from


@click.command("uninstall")
@target_options
def command(agent: str, target: str) -> None:
    """Take the entries of `agent-hooks install` out of AGENT's settings; everything else stays."""
    uninstall_from(agent, target)
