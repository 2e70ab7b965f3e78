"""The figures of each hook and guard: how often it judged, stopped, asked, rewrote and failed, and how long it took."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from agent_hooks.look.index import Index
from agent_hooks.look.index.figures import COUNTS, HOUR, from_bytes, percentile, total


def hook_figures(index: Index, since: float = 0.0) -> list[dict[str, Any]]:
    """Return the figures since a time in milliseconds, to the hour, the hook with most steps first.

    Sessions call a hook by its path or by a part of it, as their directory has it; here its file is one, with its newest
    name.  A hook that sessions loaded and that has no step is there too, with `neverRan`.
    """
    parts: dict[str, list[tuple[int, bytes]]] = {}
    names: dict[str, tuple[str, str]] = {}
    sql = "SELECT hook, path, hour, counts FROM figures WHERE hour >= ? ORDER BY hour, hook"
    ran: set[str] = set()
    for hook, path, hour, counts in index.ask(sql, (int(since // HOUR),)):
        parts.setdefault(path or hook, []).append((hour, counts))
        names[path or hook] = (hook, path)
        ran |= {hook, path}
    found = [_figures(*names[key], hours) for key, hours in parts.items()]
    loaded = index.ask("SELECT hook, path, last FROM hooks WHERE last >= ?", (since,))
    found += [_never(hook, path, last) for hook, path, last in loaded if not _has_run(hook or path, ran)]
    return sorted(found, key=lambda each: (-each["judged"], each["hook"], each["file"]))


def _figures(hook: str, path: str, hours: Iterable[tuple[int, bytes]]) -> dict[str, Any]:
    known = list(hours)
    counts = total(from_bytes(data) for _, data in known)
    return {
        "hook": hook,
        "file": path,
        **dict(zip(COUNTS, counts, strict=False)),
        "p50": percentile(counts, 0.5),
        "p99": percentile(counts, 0.99),
        # The end of the last hour with a step.
        "last": (max(hour for hour, _ in known) + 1) * HOUR,
        "gone": is_gone(path),
        "neverRan": False,
    }


def _has_run(name: str, ran: set[str]) -> bool:
    """Tell whether a hook or guard has steps; the steps of a package may name any of its files."""
    if name in ran:
        return True
    package = os.path.dirname(name) + os.sep if os.path.basename(name) == "__init__.py" else name + os.sep
    return any(each.startswith(package) or (each and name.endswith(os.sep + each)) for each in ran)


def _never(hook: str, path: str, last: float) -> dict[str, Any]:
    numbers = dict.fromkeys(COUNTS, 0)
    name = hook or os.path.basename(path)
    ends = {"p50": 0.0, "p99": 0.0, "last": last, "gone": is_gone(path), "neverRan": True}
    return {"hook": name, "file": path, **numbers, **ends}


def is_gone(path: str) -> bool:
    """Tell whether a hook's file is not there any more."""
    return bool(path) and not os.path.exists(path)
