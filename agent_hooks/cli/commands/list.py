"""`agent-hooks list`: which hooks there are, in the order they run, and where they came from."""

from __future__ import annotations

import re
from typing import Any

import anyio
import click
import msgspec
from rich.table import Table

from agent_hooks.cli.main import FAILED
from agent_hooks.cli.options import cwd_option, hook_option, json_option
from agent_hooks.cli.setup import Setup, console, set_up, short
from agent_hooks.cli.stdout import ReservedStdout
from agent_hooks.dispatch.handlers import Handler, name_of
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import EVENT_NAMES


@click.command("list")
@hook_option
@cwd_option
@json_option
@click.option("--points", is_flag=True, help="List the points at which interceptors step in, instead.")
@click.pass_context
def command(ctx: click.Context, hook_files: tuple[str, ...], cwd: str, as_json: bool, points: bool) -> None:
    """List the hooks and their handlers, in the order they run; exit 1 when one cannot be loaded."""
    if points:
        _print_points(as_json)
        return
    with ReservedStdout():
        setup = anyio.run(set_up, cwd, hook_files)
    if as_json:
        errors = [
            {"path": error.path, "file": error.file or error.path, "line": error.line, "error": error.error}
            for error in setup.errors
        ]
        click.echo(msgspec.json.encode({"handlers": _rows(setup), "errors": errors}).decode())
    else:
        _print(setup)
    for error in setup.errors:
        click.echo(f"not loaded: {error}", err=True)
    ctx.exit(FAILED if setup.errors else 0)


def _rows(setup: Setup) -> list[dict[str, Any]]:
    """Return a row per handler, by event and then in the order they run; then tools, hooks with nothing, transformers."""
    handlers = [handler for hook in setup.loaded.hooks for each in hook.handlers.values() for handler in each]
    handlers.sort(key=lambda handler: (EVENT_NAMES.index(handler.event), -handler.priority))
    rows: list[dict[str, Any]] = [
        {
            "event": handler.event,
            "hook": handler.hook,
            "source": setup.source(handler.hook),
            "handler": handler.name,
            "tool": matcher_text(handler),
            "priority": handler.priority,
        }
        for handler in handlers
    ]
    intercepting = [(hook, each) for hook in setup.loaded.hooks for each in hook.api.interceptors]
    intercepting.sort(key=lambda found: ([*POINTS].index(found[1].name), -found[1].priority))
    rows += [
        {
            "event": each.name,
            "hook": hook.path,
            "source": setup.source(hook.path),
            "handler": name_of(each.handler),
            "tool": None
            if each.matcher is None
            else f"/{each.matcher if isinstance(each.matcher, str) else each.matcher.pattern}/",
            "priority": each.priority,
        }
        for hook, each in intercepting
    ]
    for hook in setup.loaded.hooks:
        names: list[str | None] = [tool.name for tool in hook.tools]
        if not names and not any(hook.handlers.values()) and not hook.api.interceptors:
            names.append(None)
        event = "(offers a tool)" if hook.tools else "(nothing)"
        place = {"hook": hook.path, "source": setup.source(hook.path)}
        rows += [{"event": event, **place, "handler": None, "tool": name, "priority": None} for name in names]
    for step in setup.transformers.configured:
        if step.problem is None:
            path = step.place.rpartition(":")[0]
            place = {"hook": path, "source": setup.source(path)}
            row = {"event": "(transforms)", **place, "handler": step.name, "tool": step.tool, "priority": None}
            rows.append(row)
    return rows


def _print_points(as_json: bool) -> None:
    """Print the table of points: what an interceptor is told there, what it may change, and whether it may block."""
    rows = [
        {
            "point": point.name,
            "when": point.when,
            "input": list(point.fields(point.input)),
            "output": list(point.fields(point.output)),
            "matcher": point.matched,
            "blocks": point.blocks,
        }
        for point in POINTS.values()
    ]
    if as_json:
        click.echo(msgspec.json.encode({"points": rows}).decode())
        return
    table = Table(box=None, pad_edge=False)
    for column in ("point", "when", "input", "output", "matcher", "blocks"):
        table.add_column(column, overflow="fold")
    for row in rows:
        cells = (", ".join(cell) if isinstance(cell, list) else cell for cell in row.values())
        table.add_row(*("yes" if cell is True else "" if cell is False else str(cell) for cell in cells))
    console().print(table)


def matcher_text(handler: Handler) -> str | None:
    """Return a handler's `tool=` as a person would write it."""
    if handler.tool is None:
        return None
    parts = [handler.tool] if isinstance(handler.tool, str | re.Pattern) else handler.tool
    return ", ".join(part if isinstance(part, str) else f"/{part.pattern}/" for part in parts)


def _print(setup: Setup) -> None:
    table = hooks_table(setup)
    if table is not None:
        console().print(table)
    elif not setup.errors:
        click.echo("no hooks: ~/.agent/hooks and ./.agent/hooks hold none")


def hooks_table(setup: Setup) -> Table | None:
    """Return the hooks and handlers as a table, `None` when there are none."""
    rows = _rows(setup)
    if not rows:
        return None
    table = Table(box=None, pad_edge=False)
    for column in ("event", "hook", "source", "handler", "tool", "priority"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(
            row["event"],
            short(row["hook"]),
            row["source"],
            row["handler"] or "",
            row["tool"] or ("any" if row["handler"] else ""),
            "" if row["priority"] is None else str(row["priority"]),
        )
    return table
