"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from agent_hooks.bridges import BRIDGES
from agent_hooks.cli.completing import hook_names

ALL = "all"
"""The word that stands for each agent."""
_FILES = {
    "local": "In your own settings of this directory: this project, for you only.",
    "project": "In the settings of this directory that git takes along, for all people of the project.",
    "user": "In your own settings, for every project.",
}

hook_option = click.option(
    "--hook",
    "hook_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True),
    help="Also load this hook file or package; repeatable.",
)
without_option = click.option(
    "--without",
    "without",
    multiple=True,
    metavar="HOOK",
    shell_complete=hook_names,
    help="Leave out this hook, by its name or path, this once; repeatable.",
)
cwd_option = click.option(
    "--cwd",
    metavar="DIR",
    default=".",
    type=click.Path(exists=True, file_okay=False),
    help="Work in this directory instead of the current one.",
)
required_option = click.option(
    "--require-trusted",
    is_flag=True,
    help="Block every tool call while hooks or settings here are not approved, rather than leave them out.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def installation_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument AGENT…, an option for each settings file, `--diff` and `--dry-run`."""
    function = click.option("--dry-run", is_flag=True, help="Show the change, and write nothing.")(function)
    function = click.option("--diff", "shows_diff", is_flag=True, help="Show each change as a diff, then make it.")(
        function
    )
    for name, text in reversed(_FILES.items()):
        function = click.option(f"--{name}", "target", flag_value=name, help=text)(function)
    names = click.Choice([*BRIDGES, ALL])
    return click.argument("agents", metavar="AGENT…", type=names, nargs=-1, required=True)(function)
