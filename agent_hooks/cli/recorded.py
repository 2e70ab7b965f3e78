"""The common parts of the commands about records: a reader, a time, and one record or session by its id's beginning."""

from __future__ import annotations

import gc
import re
from datetime import UTC, datetime, timedelta

import click

from agent_hooks.errors import AgentHooksError
from agent_hooks.records.files import records_directory
from agent_hooks.records.joining import Reader, Record, Wanted, groups
from agent_hooks.records.reading import name_of_session
from agent_hooks.settings import agent_home
from agent_hooks.ui.harmless import harmless

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
# Candidates that an error names.
_NAMED = 5


def opened() -> Reader:
    """Return a reader of the person's records."""
    # Records hold no cycles, and the search for garbage among them would take half of the command's time.
    gc.disable()
    return Reader(records_directory(agent_home()))


def find(reader: Reader, id: str) -> Record:
    """Return the only record whose id begins so; raises `AgentHooksError` when there is none, or several."""
    # A whole id is found first, because another may begin with it.
    found: dict[str, Record] = {}
    for record in reader.records(Wanted(id=id)):
        found[record.id] = record
    if id in found:
        return found[id]
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise AgentHooksError(f"no record has an id that begins with {id!r}; agent-hooks records lists them")
    raise AgentHooksError(f"{len(found)} records have an id that begins with {id!r}: {_some(list(found))}")


def find_session(reader: Reader, id: str) -> str:
    """Return the only recorded session whose id begins so; raises `AgentHooksError` when there is none, or several."""
    sessions = {name_of_session(group.paths[0]) for group in groups(reader.directory)}
    found = sorted(each for each in sessions if each.startswith(id))
    if id in found or len(found) == 1:
        return id if id in found else found[0]
    if not found:
        raise AgentHooksError(f"no recorded session has an id that begins with {id!r}")
    raise AgentHooksError(f"{len(found)} recorded sessions have an id that begins with {id!r}: {_some(found)}")


def _some(names: list[str]) -> str:
    return harmless(", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else ""))


def moment(text: str | None) -> datetime | None:
    """Return the time that `--since` names."""
    if text is None:
        return None
    now = datetime.now(UTC)
    try:
        if (span := re.fullmatch(r"(\d+)([smhdw])", text)) is not None:
            return now - timedelta(seconds=int(span[1]) * _UNITS[span[2]])
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise click.UsageError(f"--since wants a time such as 30m, 12h, 7d or 2026-01-31, not {text!r}") from None
