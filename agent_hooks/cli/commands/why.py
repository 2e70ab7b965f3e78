"""`agent-hooks why`: why the last call, or a named one, was stopped, asked about or changed, and how to allow it."""

from __future__ import annotations

import click

from agent_hooks.cli.recorded import find, opened
from agent_hooks.cli.reports.explained import explanation
from agent_hooks.cli.reports.recorded import unread_lines
from agent_hooks.cli.streams import echo
from agent_hooks.errors import AgentHooksError
from agent_hooks.records.joining import Wanted
from agent_hooks.trust.ancestors import refuse_below_an_agent


@click.command("why")
@click.argument("id", required=False)
def command(id: str | None) -> None:
    """Say why a call was stopped, asked about or changed, by which file, and how a person allows it.

    ID is that of `agent-hooks records`, or its beginning; without it, the last such call counts.
    """
    refuse_below_an_agent("why")
    reader = opened()
    record = reader.newest(Wanted()) if id is None else find(reader, id)
    if record is None:
        raise AgentHooksError(
            "no recorded call was stopped, asked about or changed; agent-hooks records lists all calls"
        )
    for line in explanation(record):
        echo(line)
    for line in unread_lines(reader):
        echo(line, err=True)
