"""The table of hooks: a row for each handler, interceptor, tool and transformer, in the order in which they run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rich.table import Table

from agent_hooks.cli.screen.wording import plain_table, short
from agent_hooks.cli.setup import Setup
from agent_hooks.dispatch.handlers import Handler, name_of
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import EVENT_NAMES

Row = dict[str, Any]


def rows(setup: Setup) -> list[Row]:
    """Return the handlers by event, then interceptors by point, tools, hooks without any of them, and transformers."""
    return [*_handlers(setup), *_interceptors(setup), *_tools(setup), *_transformers(setup)]


def hooks_table(setup: Setup) -> Table | None:
    """Return the rows as a table, `None` when there are none."""
    found = rows(setup)
    if not found:
        return None
    # Most people have no hook in a process of its own.
    isolated = any(row["isolation"] != "inline" for row in found)
    table = plain_table("event", "hook", "source", "handler", "tool", "priority", *(["runs in"] if isolated else []))
    for row in found:
        table.add_row(
            row["event"],
            short(row["hook"]),
            row["source"],
            row["handler"] or "",
            row["tool"] or ("any" if row["handler"] else ""),
            "" if row["priority"] is None else str(row["priority"]),
            *(["its own process" if row["isolation"] == "process" else "the agent"] if isolated else []),
        )
    return table


def _row(setup: Setup, event: str, path: str, handler: str | None, tool: str | None, priority: int | None) -> Row:
    return {
        "event": event,
        "hook": path,
        "source": setup.source(path),
        "isolation": setup.isolation(path),
        "handler": handler,
        "tool": tool,
        "priority": priority,
    }


def _handlers(setup: Setup) -> Iterator[Row]:
    handlers = [handler for hook in setup.loaded.hooks for each in hook.handlers.values() for handler in each]
    handlers.sort(key=lambda handler: (EVENT_NAMES.index(handler.event), -handler.priority))
    for each in handlers:
        yield _row(setup, each.event, each.hook, each.name, _matcher_of(each), each.priority)


def _matcher_of(handler: Handler) -> str | None:
    """Return the `tool=` of a handler as a person would write it."""
    if handler.tool is None:
        return None
    parts = [handler.tool] if isinstance(handler.tool, str | re.Pattern) else handler.tool
    return ", ".join(part if isinstance(part, str) else f"/{part.pattern}/" for part in parts)


def _interceptors(setup: Setup) -> Iterator[Row]:
    points = [*POINTS]
    found = [(hook.path, each) for hook in setup.loaded.hooks for each in hook.api.interceptors]
    found.sort(key=lambda pair: (points.index(pair[1].name), -pair[1].priority))
    for path, each in found:
        pattern = each.matcher if isinstance(each.matcher, str | None) else each.matcher.pattern
        matcher = None if pattern is None else f"/{pattern}/"
        yield _row(setup, each.name, path, name_of(each.handler), matcher, each.priority)


def _tools(setup: Setup) -> Iterator[Row]:
    for hook in setup.loaded.hooks:
        for tool in hook.tools:
            yield _row(setup, "(offers a tool)", hook.path, None, tool.name, None)
        if not hook.tools and not any(hook.handlers.values()) and not hook.api.interceptors:
            yield _row(setup, "(nothing)", hook.path, None, None, None)


def _transformers(setup: Setup) -> Iterator[Row]:
    for step in setup.transformers.configured:
        if step.problem is None:
            yield _row(setup, "(transforms)", step.settings_file, step.name, step.tool, None)
