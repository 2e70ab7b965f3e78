"""`agent-hooks man`: the man page, made of the help texts."""

from __future__ import annotations

import click

from agent_hooks.cli.manual import page
from agent_hooks.cli.streams import echo_data


@click.command("man")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print the man page, made of the help texts of all commands: agent-hooks man | man -l -

    An installed wheel has it too, as share/man/man1/agent-hooks.1 beside the directory of the program.
    """
    echo_data(page(ctx.find_root().command))
