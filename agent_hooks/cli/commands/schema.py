"""`agent-hooks schema`: the JSON Schema of settings files, of events, of records, or of the lines of RPC mode."""

from __future__ import annotations

from typing import Union

import click
import msgspec

from agent_hooks.cli.rpc import protocol
from agent_hooks.cli.streams import echo_json
from agent_hooks.guards.config import GuardsSection
from agent_hooks.records.lines import AnyLine
from agent_hooks.settings_file import SettingsFile
from agent_hooks.values.events import EVENTS


@click.command("schema")
@click.argument("kind", type=click.Choice(["settings", "events", "record", "rpc"]))
def command(kind: str) -> None:
    """Print the JSON Schema of settings files, of events, of records, or of the lines of RPC mode."""
    if kind == "rpc":
        schema = protocol.schema()
    elif kind == "record":
        schema = msgspec.json.schema(AnyLine)
    else:
        schema = msgspec.json.schema(SettingsFile if kind == "settings" else Union[EVENTS])  # noqa: UP007  # a tuple
    # The schema of settings leaves the guards' section open, because the guards read it themselves.
    if kind == "settings":
        section = msgspec.json.schema(GuardsSection)
        schema["$defs"] |= section["$defs"]
        schema["$defs"]["SettingsFile"]["properties"]["guards"] = {"$ref": section["$ref"]}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    echo_json(msgspec.json.format(msgspec.json.encode(schema), indent=2).decode())
