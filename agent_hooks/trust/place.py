"""The place of a working directory: the `.agent` directories that apply to it.

They are those of the working directory and of every directory above it, up to the top of the outermost git working tree.
A repository inside of another one, such as a submodule, does not end the walk: `git init` in a directory must not switch
a gate off.  git is not started; a directory with an entry `.git` counts as the top of a working tree.

A directory that the trust store knows applies in any case: when its `.agent` was deleted, when a new repository stands
between it and the working directory, or when it was given to another user.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct

from agent_hooks.settings import PROJECT_DIRECTORY, agent_home, user_home
from agent_hooks.storage.real_path import real_path


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


def find_place(*directories: str, home: str | None = None, known: Callable[[str], bool] = lambda _: False) -> Place:
    """Return the place of one or more working directories; `top` is that of the first.

    `home` stands for `~` in tests; `known`: whether the trust store knows a directory.  The home directory and the agent
    home are never a project.  Raises `OSError` and `ValueError` for a directory that cannot be one.
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
            if known(each):
                found[each] = None
            elif each not in walk.tree:
                continue
            elif not os.path.lexists(directory):
                absent[directory] = None
            elif os.path.realpath(directory) == own:
                continue
            elif not walk.is_git and (reason := _foreign(directory)):
                skipped[Skipped(directory, reason)] = None
            else:
                found[each] = None
    # A directory above contains those below it, so the shorter path is the outer one.
    projects = sorted(found, key=lambda each: each.count(os.sep))
    return Place(walks[0].top, tuple(projects), tuple(skipped), tuple(absent))


class _Walk(Struct, frozen=True):
    """The directories from a working directory upwards to below the home directory or the root.

    `tree`: those up to `top`, the top of the outermost git working tree; all of them where there is none.
    """

    directories: list[str]
    tree: list[str]
    top: str
    is_git: bool


def _walk(start: str, home: str) -> _Walk:
    # Links are followed first, because one may lead into the home directory.
    start = here = real_path(start)
    directories: list[str] = []
    top = None
    while here not in (home, os.path.dirname(here)):
        directories.append(here)
        if _is_top(here, start):
            top = here
        here = os.path.dirname(here)
    tree = directories if top is None else directories[: directories.index(top) + 1]
    return _Walk(directories, tree, top or start, top is not None)


def _is_top(directory: str, start: str) -> bool:
    """Tell whether a directory is the top of a working tree of this user, of root, or of the owner of `start`.

    Without this rule, another user's `/tmp/.git` would make `/tmp` the top of everybody's directories there.
    """
    try:
        owner = os.lstat(os.path.join(directory, ".git")).st_uid
    except OSError:
        return False
    return owner in (0, os.geteuid()) or owner == _owner(start)


def _owner(path: str) -> int | None:
    try:
        return os.stat(path).st_uid
    except OSError:
        return None


def _foreign(directory: str) -> str | None:
    """Return the reason why the `.agent` of another user does not apply, `None` for one of this user or of root.

    The owner of a link counts as well as that of its target.
    """
    try:
        owners = {os.lstat(directory).st_uid, os.stat(directory).st_uid}
    except OSError:
        return None
    mine = owners <= {0, os.geteuid()}
    return None if mine else "belongs to another user, and is in no git working tree"
