"""`agent-hooks disable`: let a hook count nowhere, by the person's settings."""

from __future__ import annotations

import os

import click

from agent_hooks.cli.completing import hook_names
from agent_hooks.cli.disabling import disable, remedy
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.proving import prove_loosening
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.streams import tell


@click.command("disable")
@click.argument("hooks", metavar="HOOK...", nargs=-1, required=True, shell_complete=hook_names)
@cwd_option
def command(hooks: tuple[str, ...], cwd: str) -> None:
    """Let each HOOK, a name or a path, count nowhere: in no run and in no other agent, from the next event on.

    The key `disabledHooks` of ~/.agent/settings.json has its path; `agent-hooks enable` takes it out again.
    """
    prove_loosening("disable", *hooks)
    for name in hooks:
        path = disable(name, os.path.abspath(cwd))
        tell(f"{short(path)}: disabled; it counts nowhere until you enable it: {remedy(path)}")
