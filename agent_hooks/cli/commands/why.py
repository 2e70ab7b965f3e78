"""`agent-hooks why`: the fate of the last notable call, or of a named one, its cause, and how to allow or undo it."""

from __future__ import annotations

import click

from agent_hooks.cli.reports.ladder import explanation, way_back
from agent_hooks.cli.reports.recorded import find, opened, unread_lines, warn
from agent_hooks.cli.streams import echo
from agent_hooks.errors import AgentHooksError
from agent_hooks.records.joining import Wanted
from agent_hooks.trust.ancestors import refuse_below_an_agent


@click.command("why")
@click.argument("id", required=False)
def command(id: str | None) -> None:
    """Say why a call was stopped, asked about or changed, by which file, and how a person allows it.

    ID is that of `agent-hooks records`, or its beginning; without it, the last such call counts. For a call that ran, it
    names the files that its turn changed, and the command that brings them back.
    """
    refuse_below_an_agent("why")
    reader = opened()
    record = reader.newest(Wanted()) if id is None else find(reader, id)
    if record is None:
        raise AgentHooksError(
            "no recorded call was stopped, asked about or changed; agent-hooks records lists all calls, and agent-hooks "
            "undo brings back what the last turn changed"
        )
    fate, *others = explanation(record)
    if record.verdict == "overruled":
        warn(fate)
    else:
        echo(fate, words=True)
    for line in others:
        echo(line, words=True)
    for line in way_back(record, reader.turn(record)):
        echo(line)
    for line in unread_lines(reader):
        echo(line, err=True)
