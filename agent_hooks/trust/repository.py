"""The key of a project in the trust store: its repository, so that the worktrees of one share an approval.

The files of git are read as text; git itself is not started, and its environment variables do not count.  A directory
from elsewhere may hold a `.git` that names another repository, so a linked one counts only if that repository names the
directory too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

# A path in a file of git is one line; a longer file is no such file.
_MOST = 4096 * 4


def project_key(project: str) -> str:
    """Return the key of the directory that contains an `.agent`.

    It is the repository's common directory and the path inside of the working tree, or the real path of the directory
    when it is in no working tree that can be proven.
    """
    project = os.path.realpath(project)
    top = project
    while not os.path.lexists(os.path.join(top, ".git")):
        above = os.path.dirname(top)
        if above == top:
            return project
        top = above
    common = common_directory(top)
    if common is None:
        return project
    return f"{common}//{os.path.relpath(project, top)}"


def path_of_key(key: str) -> str | None:
    """Return the directory whose key it is, `None` for a repository without a working tree of its own."""
    common, slashes, inside = key.partition("//")
    if not slashes:
        return key
    top, name = os.path.split(common)
    return os.path.normpath(os.path.join(top, inside)) if name == ".git" else None


def paths_in_worktrees(key: str) -> Iterator[str]:
    """Yield the directories with that key in the linked worktrees of the repository, as the repository names them."""
    common, _, inside = key.partition("//")
    worktrees = os.path.join(common, "worktrees")
    try:
        names = os.listdir(worktrees) if inside else []
    except OSError:
        return
    for name in names:
        if (back := _line(os.path.join(worktrees, name, "gitdir"))) is not None:
            top = os.path.dirname(os.path.realpath(os.path.join(worktrees, name, back)))
            yield os.path.normpath(os.path.join(top, inside))


def common_directory(top: str) -> str | None:
    """Return the directory that all worktrees of a repository share, `None` if `top` does not provably belong to one."""
    entry = os.path.join(top, ".git")
    if os.path.islink(entry):
        return None
    if os.path.isdir(entry):
        # In a repository of its own, these would name another one.
        foreign = any(os.path.lexists(os.path.join(entry, name)) for name in ("commondir", "gitdir"))
        return None if foreign else entry
    return _linked(top, entry)


def _linked(top: str, entry: str) -> str | None:
    """Return the common directory of a linked worktree, whose repository has an entry that names `top`."""
    named = _line(entry)
    if named is None or not named.startswith("gitdir: "):
        return None
    worktree = os.path.realpath(os.path.join(top, named.removeprefix("gitdir: ")))
    back, common = _line(os.path.join(worktree, "gitdir")), _line(os.path.join(worktree, "commondir"))
    if back is None or common is None or os.path.basename(os.path.dirname(worktree)) != "worktrees":
        return None
    directory = os.path.realpath(os.path.join(worktree, common))
    points_back = os.path.realpath(os.path.join(worktree, back)) == entry
    return directory if points_back and directory == os.path.dirname(os.path.dirname(worktree)) else None


def _line(path: str) -> str | None:
    """Return the one line of a small file of git, `None` if there is no such regular file."""
    try:
        if not os.path.isfile(path):
            return None
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            line = os.fsdecode(os.read(file, _MOST)).rstrip("\r\n")
        finally:
            os.close(file)
    except OSError:
        return None
    # No path has a null character, and with one every call of the system would raise.
    return line if line and not set("\0\n") & set(line) else None
