"""`agent-hooks new`: write a starter hook that works, and approve it."""

from __future__ import annotations

import click

from agent_hooks.cli.kit import add, refuse_a_wrong_name, shipped, summary
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.streams import echo
from agent_hooks.errors import nearest
from agent_hooks.trust.ancestors import refuse_below_an_agent

DEFAULT = "gate"


@click.command("new")
@click.argument("name", required=False)
@click.option("--template", metavar="T", help=f"The kind of hook, {DEFAULT} by default; --list shows all.")
@click.option("--list", "lists", is_flag=True, help="List the templates, and write nothing.")
@click.option("--user", is_flag=True, help="Write it to ~/.agent/hooks, for all your projects.")
@cwd_option
def command(name: str | None, template: str | None, lists: bool, user: bool, cwd: str) -> None:
    """Write a hook to .agent/hooks/NAME.py of the project, and approve it: a gate, or another one to change as you like.

    It is approved if the rest of the project's hooks and settings is; otherwise run `agent-hooks trust`.
    """
    templates = shipped("templates")
    if lists:
        width = max(map(len, templates))
        for each, text in templates.items():
            echo(f"{each:{width}}  {summary(text).removeprefix(f'{each}: ')}")
        return
    refuse_below_an_agent("new")
    if name is None:
        raise click.UsageError("give the hook a name: agent-hooks new NAME")
    name = refuse_a_wrong_name(name)
    chosen = DEFAULT if template is None else template
    if chosen not in templates:
        near = nearest(chosen, templates)
        hint = f" (did you mean {near!r}?)" if near else ""
        raise click.UsageError(f"there is no template {chosen!r}{hint}; the templates are: {', '.join(templates)}")
    # The first word of a template is its name.
    text = templates[chosen].replace(f'"""{chosen}: ', f'"""{name}: ', 1)
    add(name, text, user=user, cwd=cwd, by="new")
