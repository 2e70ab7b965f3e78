"""`agent-hooks bridge`: what another agent runs at each of its events; a payload on stdin, one JSON object on stdout."""

from __future__ import annotations

import os
from contextlib import suppress

import click

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.cli.answering import answer
from agent_hooks.server.stub import command_of
from agent_hooks.storage.files import StorageError


@click.command("bridge")
@click.argument("agent", type=click.Choice(list(BRIDGES)))
@click.argument("event", required=False)
@click.option("--resident", is_flag=True, help="Let the resident server answer, which keeps the hooks' state.")
@click.pass_context
def command(ctx: click.Context, agent: str, event: str | None, resident: bool) -> None:
    """Answer one EVENT of another AGENT: its payload on stdin, one JSON object on stdout.

    `agent-hooks install` makes the agent run this. EVENT says what a payload that cannot be read was about.
    """
    bridge = open_bridge(agent)
    if resident and bridge.runs_here(os.environ):
        with suppress(StorageError):  # where the file cannot be written, this process judges
            run = [*command_of(bridge), *([event] if event else [])]
            os.execv(run[0], run)  # noqa: S606  # there is nothing for a shell in it
    ctx.exit(answer(bridge, event))
