"""Tables of the hooks and settings in force, and of the projects whose hooks and settings wait for approval."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET
from rich.table import Table

from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.trust_question import MOST_FILES, fact_lines
from agent_hooks.cli.screen.wording import plain_table, short
from agent_hooks.cli.setup import Setup
from agent_hooks.dispatch.handlers import Handler, name_of
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import EVENT_NAMES
from agent_hooks.errors import count
from agent_hooks.guards import BUILTIN
from agent_hooks.settings import SETTINGS_FILE
from agent_hooks.settings_file import SettingsFile, read_settings_file
from agent_hooks.trust.facts import FileFacts, set_facts
from agent_hooks.trust.policy import ProjectTrust, TrustedSources

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


def waiting_facts(project: ProjectTrust) -> tuple[FileFacts, ...]:
    """Return the facts about the files of a set that is not approved; of a changed set, about the changed files."""
    approved = {} if project.approval is None else project.approval.files
    names = [file.name for file in project.found.files if approved.get(file.name) != file.digest]
    return set_facts(project.found, names[:MOST_FILES])


def untrusted_lines(sources: TrustedSources) -> Iterator[str]:
    """Yield lines without harm about each project that waits, and each directory that does not apply."""
    if sources.problem is not None:
        yield one_line(sources.problem)
    for project in sources.projects:
        if project.message is None:
            continue
        yield f"not loaded: {one_line(project.message)}"
        for each in waiting_facts(project):
            yield f"  {one_line(each.name)} ({each.role})"
            yield from fact_lines(each.facts, one_line)
        left = len(project.found.files) - MOST_FILES
        if left > 0:
            yield f"  and {count(left, 'more file')}"
    for skipped in sources.place.skipped:
        yield one_line(str(skipped))


def approval_notes(sources: TrustedSources) -> Iterator[str]:
    """Yield a line for each project of which any content counts, or an older set than the last approved one."""
    for project in sources.projects:
        if project.state == "always":
            yield f"{one_line(project.directory)}: any content counts (trust --always); to end this: agent-hooks untrust"
        elif project.note is not None:
            yield one_line(project.note)


def untrusted_rows(sources: TrustedSources) -> list[dict[str, Any]]:
    """Return the same for programs."""
    return [
        {
            "project": project.project,
            "state": project.state,
            "digest": project.found.digest,
            "message": project.message,
            "files": [
                {
                    "name": each.name,
                    "role": each.role,
                    "facts": [{"kind": fact.kind, "text": fact.text, "lines": fact.lines} for fact in each.facts],
                }
                for each in waiting_facts(project)
            ],
        }
        for project in sources.projects
        if project.waits
    ]


BUILT_IN = "built in"


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


def _setting_row(name: str, state: str, sources: list[str]) -> Row:
    return {"name": name, "state": state, "sources": sources or [BUILT_IN]}


def _guards(setup: Setup, files: list[tuple[str, SettingsFile]]) -> Iterator[Row]:
    settings = setup.guard_settings
    # These keys say something about every guard.
    general = [path for path, file in files if {"level", "undecidable", "packs", "exceptions"} & file.guards.keys()]
    exceptions = count(len(settings.exceptions), "exception") if settings.exceptions else ""
    for guard in BUILTIN:
        off = [path for path, file in files if guard in file.guards.get("disabled", ())]
        state = "off" if off else ", ".join(filter(None, (f"on, level {settings.level}", exceptions)))
        yield _setting_row(guard, state, off or general)
    for path, file in files:
        for rule in file.guards.get("rules", ()):
            verb = "asks" if rule.get("ask") else "blocks"
            yield _setting_row(f"rule {rule['id']}", f"{verb} {rule.get('tool') or 'any tool'}", [path])


def _redaction(setup: Setup, files: list[tuple[str, SettingsFile]]) -> Row:
    settings = setup.settings.redaction
    state = "off" if not settings.enabled else "reports only" if settings.report_only else "on"
    if settings.enabled and settings.patterns:
        state += f", {count(len(settings.patterns), 'pattern')} of your own"
    if settings.enabled and settings.disabled:
        state += f", without {', '.join(sorted(settings.disabled))}"
    return _setting_row("redaction", state, [path for path, file in files if file.redaction is not UNSET])


def _checkpoints(setup: Setup, files: list[tuple[str, SettingsFile]]) -> Row:
    state = "on" if setup.settings.checkpoints.enabled else "off"
    return _setting_row("checkpoints", state, [path for path, file in files if file.checkpoints is not UNSET])
