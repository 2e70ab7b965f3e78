"""The approvals in the trust store, and the state of the projects here, as text or JSON."""

from __future__ import annotations

import json
import os
from typing import Any

from msgspec import to_builtins

from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.streams import complain, echo, echo_json
from agent_hooks.cli.trusting import day
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.trust.policy import ProjectTrust, Trust, judge
from agent_hooks.trust.store import Entry, TrustStore


def print_approvals(trust: Trust, cwd: str, *, as_json: bool) -> bool:
    """Print the projects that apply to a directory, then all others of the store; return whether the store is damaged."""
    sources = trust.sources(cwd)
    store = trust.store()
    here = [_row(each, store, here=True) for each in sources.projects]
    keys = {each.key for each in sources.projects}
    rows = [*here, *(_row_of(key, entry, store) for key, entry in store.entries.items() if key not in keys)]
    if as_json:
        echo_json(json.dumps({"projects": rows, "problem": store.problem}))
    else:
        for row in rows:
            _print(row)
        if not rows:
            echo("no project is here, and none was approved")
    if store.problem is not None:
        complain(store.problem)
    return store.problem is not None


def _row_of(key: str, entry: Entry, store: TrustStore) -> dict[str, Any]:
    """Return the row of a project elsewhere."""
    if os.path.isdir(os.path.join(entry.root, PROJECT_DIRECTORY)):
        project = judge(store, entry.root)
        # Another repository may be there now.
        if project.key == key:
            return _row(project, store, here=False)
    return {
        "project": entry.root,
        "here": False,
        "state": "gone",
        "digest": None,
        "inForce": None,
        "newest": True,
        "message": None,
        **_history(entry),
    }


def _row(project: ProjectTrust, store: TrustStore, *, here: bool) -> dict[str, Any]:
    return {
        "project": project.project,
        "here": here,
        "state": project.state,
        "digest": None if project.found.problem is not None else project.found.digest,
        "inForce": project.digest,
        "newest": project.newest,
        "message": project.message,
        **_history(store.entries.get(project.key)),
    }


def _history(entry: Entry | None) -> dict[str, Any]:
    last = entry.approved[-1] if entry is not None and entry.approved else None
    return {
        "since": None if last is None else last.at,
        "by": None if last is None else last.by,
        "approvals": 0 if entry is None else len(entry.approved),
        "always": entry is not None and entry.always,
        "origin": None if last is None or last.origin is None else to_builtins(last.origin),
    }


def _print(row: dict[str, Any]) -> None:
    echo(one_line(row["project"]))
    state = row["state"] + ("" if row["newest"] else ", an older approval; a newer one was given since")
    fields = {"state": state, "digest": row["digest"]}
    if row["inForce"] not in (None, row["digest"]):
        fields["in force"] = row["inForce"]
    if row["since"] is not None:
        number = f"{row['approvals']} kept" if row["approvals"] > 1 else ""
        at = day(row["since"])
        fields["approved"] = ", ".join(each for each in (at, f"by {row['by']}", number) if each)
    if row["always"]:
        fields["ALWAYS"] = "any content counts, on every branch; to end this: agent-hooks untrust"
    for name, value in fields.items():
        if value is not None:
            echo(f"  {name:<9} {value}")
    if row["message"] is not None and row["here"]:
        echo(f"  → {one_line(row['message'])}")
