"""The project that an answer belongs to: git's common directory, so that the worktrees of a repository share answers."""

from __future__ import annotations

import os

from msgspec import Struct

from agent_hooks.trust.place import find_place
from agent_hooks.trust.repository import common_directory


class Project(Struct, frozen=True):
    """A project, and a directory in it.

    `path`: git's common directory, or the working directory where there is no repository; `inode`: the number that the
    file system gave `path`, so that another directory at the same path is another project; `directory`: the working
    directory, from the top of the working tree.
    """

    path: str
    inode: int
    directory: str


def project_of(cwd: str) -> Project:
    """Return the project of a working directory; raises `OSError` and `ValueError` for one that cannot be."""
    here = os.path.realpath(cwd)
    top = find_place(here).top
    path = common_directory(top) or top
    return Project(path, os.stat(path).st_ino, os.path.relpath(here, top))


def moved(path: str, inode: int) -> str:
    """Return why a project is not where it was, as a sentence part; empty when it is there."""
    try:
        found = os.stat(path).st_ino
    except (OSError, ValueError):
        return "its project was moved or removed"
    return "" if found == inode else "another project is at the path of its project now"
