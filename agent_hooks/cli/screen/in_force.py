"""The table of everything but hooks that is in force: guards, redaction and checkpoints, and the files they come from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET
from rich.table import Table

from agent_hooks.cli.screen.wording import plain_table, short
from agent_hooks.cli.setup import Setup
from agent_hooks.errors import count
from agent_hooks.guards import BUILTIN
from agent_hooks.settings import SETTINGS_FILE
from agent_hooks.settings_file import SettingsFile, read_settings_file

BUILT_IN = "built in"
Row = dict[str, Any]


def in_force(setup: Setup) -> list[Row]:
    """Return a row for each guard, for each rule of the person's own, for redaction and for checkpoints.

    `sources`: the settings files that set something about it, `built in` without any; raises `SettingsError`.
    """
    files = [*_files(setup)]
    return [*_guards(setup, files), _redaction(setup, files), _checkpoints(setup, files)]


def in_force_table(setup: Setup) -> Table:
    """Return the rows as a table."""
    table = plain_table("in force", "state", "from")
    for row in in_force(setup):
        table.add_row(row["name"], row["state"], ", ".join(map(short_source, row["sources"])))
    return table


def short_source(source: str) -> str:
    """Return a source as a person would write it."""
    return source if source == BUILT_IN else short(source)


def _files(setup: Setup) -> Iterator[tuple[str, SettingsFile]]:
    for tree in setup.sources.trees:
        path = os.path.join(tree.directory, SETTINGS_FILE)
        if (file := read_settings_file(path, tree)) is not None:
            yield path, file


def _row(name: str, state: str, sources: list[str]) -> Row:
    return {"name": name, "state": state, "sources": sources or [BUILT_IN]}


def _guards(setup: Setup, files: list[tuple[str, SettingsFile]]) -> Iterator[Row]:
    settings = setup.guard_settings
    # These keys say something about every guard.
    general = [path for path, file in files if {"level", "undecidable", "packs", "exceptions"} & file.guards.keys()]
    exceptions = count(len(settings.exceptions), "exception") if settings.exceptions else ""
    for guard in BUILTIN:
        off = [path for path, file in files if guard in file.guards.get("disabled", ())]
        state = "off" if off else ", ".join(filter(None, (f"on, level {settings.level}", exceptions)))
        yield _row(guard, state, off or general)
    for path, file in files:
        for rule in file.guards.get("rules", ()):
            verb = "asks" if rule.get("ask") else "blocks"
            yield _row(f"rule {rule['id']}", f"{verb} {rule.get('tool') or 'any tool'}", [path])


def _redaction(setup: Setup, files: list[tuple[str, SettingsFile]]) -> Row:
    settings = setup.settings.redaction
    state = "off" if not settings.enabled else "reports only" if settings.report_only else "on"
    if settings.enabled and settings.patterns:
        state += f", {count(len(settings.patterns), 'pattern')} of your own"
    if settings.enabled and settings.disabled:
        state += f", without {', '.join(sorted(settings.disabled))}"
    return _row("redaction", state, [path for path, file in files if file.redaction is not UNSET])


def _checkpoints(setup: Setup, files: list[tuple[str, SettingsFile]]) -> Row:
    state = "on" if setup.settings.checkpoints.enabled else "off"
    return _row("checkpoints", state, [path for path, file in files if file.checkpoints is not UNSET])
