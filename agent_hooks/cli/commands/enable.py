"""`agent-hooks enable`: let a disabled hook count again."""

from __future__ import annotations

import os

import click

from agent_hooks.cli.completing import hook_names
from agent_hooks.cli.disabling import enable
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.proving import prove_loosening
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.streams import tell


@click.command("enable")
@click.argument("hooks", metavar="HOOK...", nargs=-1, required=True, shell_complete=hook_names)
@cwd_option
def command(hooks: tuple[str, ...], cwd: str) -> None:
    """Let each disabled HOOK, a name or a path, count again, from the next event on."""
    prove_loosening("enable", *hooks)
    for name in hooks:
        path = enable(name, os.path.abspath(cwd))
        tell(f"{short(path)}: enabled; it counts again")
