"""One fact about a file, and the kinds of facts."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal[
    "subscribes",
    "offers",
    "rewrites",
    "imports",
    "needs",
    "programs",
    "connections",
    "environment",
    "loosens",
    "names",
    "unknown",
    "refused",
]
KINDS: dict[Kind, str] = {
    "subscribes": "subscribes to",
    "offers": "offers tools",
    "rewrites": "rewrites",
    "imports": "imports",
    "needs": "depends on",
    "programs": "starts programs",
    "connections": "opens connections",
    "environment": "reads the environment",
    "loosens": "LOOSENS",
    "names": "names hooks",
    "unknown": "CANNOT BE KNOWN",
    "refused": "DOES NOT LOAD",
}
"""The kinds of facts in the order in which they are shown, each with its heading."""


class Fact(Struct, frozen=True):
    """One fact; `lines`: the places in the file, none when it concerns the whole file."""

    kind: Kind
    text: str
    lines: tuple[int, ...] = ()


def shortened(text: str, most: int = 120) -> str:
    """Return a text of the file, cut for a line of facts."""
    return text if len(text) <= most else text[: most - 1] + "…"
