"""Where the checkpoints of working trees are kept: a git directory for each, below the agent home.

The name of a store comes from the real path of its working tree.  A store needs nothing of the person's repository: no
push sends it, no cleaning of the repository takes its objects, and it is there when `.git` is deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from agent_hooks.turn_notes import store_of, stores_directory

_TOP = "top"
_LONGEST = 16_384


def all_stores() -> Iterator[str]:
    """Yield the stores that exist."""
    try:
        names = sorted(os.listdir(stores_directory()))
    except OSError:
        return
    for name in names:
        store = os.path.join(stores_directory(), name)
        if os.path.isfile(os.path.join(store, _TOP)):
            yield store


def top_of(store: str) -> str | None:
    """Return the working tree of a store, `None` if its file cannot be read."""
    try:
        with open(os.path.join(store, _TOP), "rb") as file:
            return os.fsdecode(file.read(_LONGEST)) or None
    except OSError:
        return None


def lost_tree(where: str, above: str | None = None) -> str | None:
    """Return the nearest directory around `where` that has a store, and below `above` if given.

    `above` is the working tree that git finds.  So the directory's own `.git` is damaged or gone.
    """
    here = os.path.realpath(where)
    end = None if above is None else os.path.realpath(above)
    while here != end:
        with suppress(OSError, ValueError):
            if top_of(store_of(here)) == here:
                return here
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent
    return None
