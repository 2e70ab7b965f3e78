"""`agent-hooks examples`: list the examples that travel with the package, and add one to the hooks."""

from __future__ import annotations

import json

import click

from agent_hooks.cli.common import WholeHelpGroup
from agent_hooks.cli.kit import add, shipped, summary
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.screen.wording import console, plain_table
from agent_hooks.cli.streams import echo, echo_data, echo_json
from agent_hooks.errors import AgentHooksError, did_you_mean
from agent_hooks.trust.ancestors import refuse_below_an_agent

_OTHERWISE = "to use or read an example: agent-hooks examples add WORD, or examples show WORD"


@click.group("examples", cls=WholeHelpGroup, invoke_without_command=True, otherwise=_OTHERWISE)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the examples: whole hooks, each with one idea, that travel with the package."""
    if ctx.invoked_subcommand is not None:
        return
    found = {name: summary(text) for name, text in shipped("hooks").items()}
    if as_json:
        echo_json(json.dumps({"examples": [{"name": name, "summary": text} for name, text in found.items()]}))
        return
    table = plain_table("example", "does")
    for name, text in found.items():
        table.add_row(name, text)
    console().print(table)
    echo("to use one: agent-hooks examples add NAME; to read one: agent-hooks examples show NAME")


@command.command("add")
@click.argument("name")
@click.option("--user", is_flag=True, help="Write it to ~/.agent/hooks, for all your projects.")
@cwd_option
def add_example(name: str, user: bool, cwd: str) -> None:
    """Write the example NAME to .agent/hooks of the project, and approve it as `agent-hooks new` does."""
    refuse_below_an_agent("examples add")
    name, text = _example(name)
    add(name, text, user=user, cwd=cwd, by="examples add")


@command.command("show")
@click.argument("name")
def show_example(name: str) -> None:
    """Print the example NAME."""
    echo_data(_example(name)[1])


def _example(name: str) -> tuple[str, str]:
    """Return the name and text of an example; `-` stands for `_`.  Raises `AgentHooksError` with the nearest name."""
    examples = shipped("hooks")
    name = name.removesuffix(".py").replace("-", "_")
    if name not in examples:
        raise AgentHooksError(f"there is no example {name!r}{did_you_mean(name, examples)}")
    return name, examples[name]
