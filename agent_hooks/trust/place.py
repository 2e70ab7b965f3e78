"""The place of a working directory: the `.agent` directories that apply to it.

They are those of the working directory and of every directory above it, up to the top of the outermost git working tree.
A repository inside of another one, such as a submodule, does not end the walk: `git init` in a directory must not switch
a gate off.  git is not started; a directory with an entry `.git` counts as the top of a working tree.
"""

from __future__ import annotations

import os

from msgspec import Struct

from agent_hooks.settings import PROJECT_DIRECTORY, agent_home, user_home


class Skipped(Struct, frozen=True):
    """An `.agent` directory that does not apply, and the reason as a sentence part: `belongs to another user`."""

    directory: str
    reason: str

    def __str__(self) -> str:
        return f"{self.directory} is not used: it {self.reason}"


class Place(Struct, frozen=True):
    """The place of a working directory.

    `top`: the top of the outermost git working tree, the working directory itself where there is none; `projects`: the
    directories with an `.agent` that applies, outermost first; `skipped`: the `.agent` directories that do not;
    `absent`: the paths where an `.agent` would apply if there were one.
    """

    top: str
    projects: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()
    absent: tuple[str, ...] = ()


def find_place(*directories: str, home: str | None = None) -> Place:
    """Return the place of one or more working directories; `top` is that of the first.

    `home` stands for `~` in tests.  The home directory and the agent home are never a project.
    """
    person = os.path.realpath(user_home() if home is None else home)
    own = os.path.realpath(agent_home(home))
    walks = [_walk(directory, person) for directory in dict.fromkeys(directories)]
    found: dict[str, None] = {}
    skipped: dict[Skipped, None] = {}
    absent: dict[str, None] = {}
    for walk in walks:
        for each in reversed(walk.directories):
            directory = os.path.join(each, PROJECT_DIRECTORY)
            if not os.path.lexists(directory):
                absent[directory] = None
            elif os.path.realpath(directory) == own:
                continue
            elif not walk.is_git and (reason := _foreign(directory)):
                skipped[Skipped(directory, reason)] = None
            else:
                found[each] = None
    # A directory above contains those below it, so the shorter path is the outer one.
    projects = sorted(found, key=lambda each: each.count(os.sep) if each != os.sep else 0)
    return Place(walks[0].top, tuple(projects), tuple(skipped), tuple(absent))


class _Walk(Struct, frozen=True):
    """The directories from a working directory upwards, and the top of its outermost git working tree."""

    directories: list[str]
    top: str
    is_git: bool


def _walk(start: str, home: str) -> _Walk:
    """Return the directories from `start` up to the outermost working tree's top, else up to below the home directory."""
    # Links are followed first, because one may lead into the home directory.
    here = os.path.realpath(start)
    directories: list[str] = []
    top = None
    while here not in (home, os.path.dirname(here)):
        directories.append(here)
        if os.path.lexists(os.path.join(here, ".git")):
            top = here
        here = os.path.dirname(here)
    if top is not None:
        del directories[directories.index(top) + 1 :]
    return _Walk(directories, top or os.path.realpath(start), top is not None)


def _foreign(directory: str) -> str | None:
    """Return the reason why the `.agent` of another user does not apply, `None` for one of this user or of root."""
    try:
        owner = os.stat(directory).st_uid
    except OSError:
        return None
    return None if owner in (0, os.geteuid()) else "belongs to another user, and is in no git working tree"
