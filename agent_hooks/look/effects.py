"""The effects of a recorded call, found again from its input.

Records hold no effects, because the input says the same.  The guards of today read it, with the links of today's disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_hooks.effects import effects_of
from agent_hooks.records.lines import Decision

# Paths and hosts of one kind that are named.
_MOST = 50


def effects_of_record(decision: Decision, input: Any) -> dict[str, Any] | None:
    """Return the effects of a call by kind: `reads`, `writes`, `deletes`, `sends`, and `opaque` if there may be more.

    `input`: the input as the guards saw it.  `None` without a directory, and for an input of which a part was cut off.
    """
    if not decision.cwd or decision.input_cut or not isinstance(input, dict):
        return None
    found = effects_of(decision.tool, input, cwd=decision.cwd)
    root = decision.cwd.rstrip("/") + "/"

    def named(access: str) -> list[str]:
        return _first(each.path.removeprefix(root) for each in found.paths if each.access == access)

    hosts = (each.host or "a host that is not known" for each in found.transfers if each.direction == "out")
    return {
        "reads": named("read"),
        "writes": named("write"),
        "deletes": named("delete"),
        "sends": _first(hosts),
        "opaque": bool(found.unknown),
    }


def _first(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts))[:_MOST]
