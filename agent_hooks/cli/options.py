"""Options that several commands have."""

from __future__ import annotations

import click

hook_option = click.option(
    "--hook",
    "hook_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True),
    help="Also load this hook file or package; repeatable.",
)
cwd_option = click.option(
    "--cwd",
    metavar="DIR",
    default=".",
    type=click.Path(exists=True, file_okay=False),
    help="Work in this directory instead of the current one.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
