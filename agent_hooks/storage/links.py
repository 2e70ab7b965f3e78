"""Keep the links of a project from leading a write to another place: a checkout may bring them along."""

from __future__ import annotations

import os

from agent_hooks.storage.files import StorageError
from agent_hooks.storage.programs import is_in, tree_of

_GIT = ".git"


def inside_tree(path: str, cwd: str) -> str:
    """Return the absolute path of a file to write.

    A path that enters the working tree around `cwd` has to stay in it, outside of git's own directory.  Your own links
    outside of the tree lead anywhere.  Raises `StorageError`, which names the link.
    """
    full = os.path.abspath(os.path.join(cwd, path))
    tree = tree_of(cwd)
    if tree is None:
        return full
    parts = full.split(os.sep)
    is_entered = False
    for end in range(2, len(parts) + 1):
        here = os.sep.join(parts[:end])
        real = os.path.realpath(here)
        is_there = is_in(real, tree) and (_GIT in parts[:end] or _GIT not in os.path.relpath(real, tree).split(os.sep))
        if is_entered and not is_there:
            raise StorageError(
                f"cannot write {path}: {here} is a link to {real}. Remove the link, or name another file"
            )
        is_entered = is_there
    return full
