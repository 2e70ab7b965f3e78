"""`agent-hooks uninstall`: take the entries of `install` out again, and all files that were made for them."""

from __future__ import annotations

import os

import click

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.cli.installing import Wish, failing, prove_once, uninstall
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import ALL, installation_options
from agent_hooks.cli.streams import tell
from agent_hooks.errors import AgentHooksError
from agent_hooks.installs.registry import own_files


@click.command("uninstall")
@installation_options
@click.pass_context
def command(ctx: click.Context, agents: tuple[str, ...], target: str | None, dry_run: bool, shows_diff: bool) -> None:
    """Take the entries of `agent-hooks install` out of each AGENT's settings, wherever they are; everything else stays.

    `all` stands for every agent, also one that has left this machine since. The files that were made for the entries go
    with the last of them. Your hooks, approvals, records and sessions stay.
    """
    chosen = list(BRIDGES) if ALL in agents else list(dict.fromkeys(agents))
    wish = Wish(os.getcwd(), target, prove_once("uninstall", *agents), dry_run=dry_run, shows_diff=shows_diff)
    failed = [name for name in chosen if not _uninstalled(name, wish, several=len(chosen) > 1)]
    if ALL in agents and not dry_run and (kept := own_files()):
        tell(f"your own files stay: {', '.join(kept)}")
    ctx.exit(FAILED if failed else OK)


def _uninstalled(name: str, wish: Wish, *, several: bool) -> bool:
    """Uninstall one agent; of several, a failure is printed and the others follow."""
    bridge = open_bridge(name)
    if not several:
        return uninstall(bridge, wish)
    tell(f"\n== {name}")
    try:
        return uninstall(bridge, wish)
    except AgentHooksError as exc:
        failing(bridge, exc)
        return False
