"""`agent-hooks bridge`: answer one event of another agent, by the resident server or in this process."""

from __future__ import annotations

import os
from contextlib import suppress

import click

from agent_hooks.bridges import BRIDGES, guests, open_bridge
from agent_hooks.bridges.base.verdicts import UNJUDGED
from agent_hooks.cli.answering import answer
from agent_hooks.cli.streams import echo_data
from agent_hooks.errors import SettingsError
from agent_hooks.server.fixed import fixed_for_account, settle
from agent_hooks.server.stub import command_of
from agent_hooks.storage.files import StorageError


@click.command("bridge")
@click.argument("agent", type=click.Choice(list(BRIDGES)))
@click.argument("event", required=False)
@click.option("--resident", is_flag=True, help="Let the resident server answer, which keeps the hooks' state.")
@click.pass_context
def command(ctx: click.Context, agent: str, event: str | None, resident: bool) -> None:
    """Answer one EVENT of another AGENT: its payload on stdin, one JSON object on stdout.

    `agent-hooks install` makes the agent run this. EVENT is the event's name, for a payload that cannot be read.
    """
    bridge = open_bridge(agent)
    if resident and (bridge.runs_here(os.environ) or guests(agent, os.environ)):
        # The entry that people share names no path, and the environment is that of the project's settings.
        try:
            settle(fixed_for_account())
        except SettingsError as exc:
            reply = bridge.refuse(event, f"{UNJUDGED}: {exc}")
            echo_data(reply.stdout)
            ctx.exit(reply.exit_code)
        # Without the generated file, this process judges.
        with suppress(StorageError):
            args = [*command_of(bridge), *([event] if event else [])]
            os.execv(args[0], args)  # noqa: S606  # no shell reads the arguments
    ctx.exit(answer(bridge, event))
