"""The same words and tables wherever a command prints: counts, paths, failures of hooks."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_hooks.errors import HookError
from agent_hooks.ui.harmless import harmless

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from agent_hooks.cli.screen.paper import Paper

NO_HOOKS = "no hooks: ~/.agent/hooks and .agent/hooks of the project hold none"


def short(path: str | Path) -> str:
    """Return a path as a person would write it: relative to the current directory if it lies below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def at_home(path: str) -> str:
    """Return a path with `~` in the place of the person's home."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def hook_error_text(error: HookError) -> str:
    """Return the line for a failure of a hook, fit for a terminal, with short paths."""
    shown = replace(error, hook_path=short(error.hook_path), file=error.file and short(error.file))
    return harmless(f"{shown} ({error.outcome})")


def console() -> Paper:
    """Return a console for tables on stdout: as wide as the terminal, and 200 columns without one."""
    # Imported here, because it is large and most commands need none.
    from agent_hooks.cli.screen.paper import Paper

    return Paper(highlight=False, markup=False, width=None if sys.stdout.isatty() else 200)


def plain_table(*columns: str) -> Table:
    """Return an empty table without lines, whose cells are folded rather than cut."""
    from rich.table import Table  # here, as above

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
