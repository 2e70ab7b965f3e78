"""Find hook files and packages: in the directories of source trees, and at paths that a person has written."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_hooks.errors import os_reason
from agent_hooks.hook_packages import INIT, is_hook_package, is_package
from agent_hooks.hooks.loaded import LoadError
from agent_hooks.settings import SETTINGS_FILE
from agent_hooks.settings_file import dangling_link
from agent_hooks.storage.spelling import existing
from agent_hooks.trees import ApprovedFile, SourceTree, approved_file
from agent_hooks.validation import LONGEST_PATH, TOO_LONG

if TYPE_CHECKING:
    from pathlib import Path

HOOKS_DIRECTORY = "hooks"


class FoundHooks(Struct, frozen=True):
    """The paths of hooks, the errors of directories that could not be read, and the trees that were searched.

    `disabled`: the paths that the person's settings leave out.
    """

    paths: list[str]
    errors: list[LoadError]
    trees: tuple[SourceTree, ...] = ()
    disabled: tuple[str, ...] = ()


def find_hooks(configured_paths: Iterable[str | Path], trees: Iterable[SourceTree]) -> FoundHooks:
    """Return the paths of the hooks of `trees`, in that order, and then `configured_paths`."""
    trees = tuple(trees)
    errors: list[LoadError] = []
    paths = [path for tree in trees for path in _hook_files(tree, errors)]
    return FoundHooks([*paths, *map(str, configured_paths)], errors, trees)


def _hook_files(tree: SourceTree, errors: list[LoadError]) -> list[str]:
    """Return the hook files and packages of a tree."""
    return hooks_in(os.path.join(tree.directory, HOOKS_DIRECTORY), tree, errors)


def hooks_in(directory: str, tree: SourceTree, errors: list[LoadError]) -> list[str]:
    """Return the hook files and packages of a directory, sorted; a name that starts with `.` or `_` is no hook.

    `tree`: the source tree that the directory belongs to; `errors` gets the reason why the directory cannot be read.
    """
    try:
        names = tree.names(directory)
    except FileNotFoundError:
        if link := dangling_link(directory):
            text = f"the hook directory cannot be read: {link} is a symlink to a missing file"
            errors.append(LoadError(directory, text))
        return []
    except OSError as exc:
        errors.append(LoadError(directory, f"the hook directory cannot be read: {os_reason(exc)}"))
        return []
    names = [name for name in names if name[0] not in "._"]
    paths = (os.path.join(directory, name) for name in names)
    return [path for path in paths if path.endswith(".py") or is_hook_package(path, tree)]


def label_of(path: str, roots: list[tuple[str, str]]) -> str:
    """Return a path as a person would write it: relative to the project's directory, or with `~`."""
    for root, sign in roots:
        if path.startswith(root):
            return sign + path[len(root) :]
    return path


def inspect_path(path: str, directories: dict[str, str]) -> tuple[str, str, str | None]:
    """Return `path` as it is spelled on disk, its real path, and the reason why it cannot be a hook, if there is one.

    `directories` caches the real paths of directories.
    """
    if len(path) > LONGEST_PATH:
        return path, path, TOO_LONG
    try:
        plain = stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        path, plain = existing(path), False
    if not plain:
        return path, os.path.realpath(path), _why_not_a_file(path)
    directory, name = os.path.split(path)
    if directory not in directories:
        directories[directory] = os.path.realpath(directory)
    return path, os.path.join(directories[directory], name), None


def _why_not_a_file(path: str) -> str | None:
    if os.path.islink(path) and not os.path.exists(path):
        return f"is a symlink to {os.readlink(path)}, which does not exist"
    if not os.path.exists(path):
        return "no hook fits this pattern" if re.search(r"[*?[]", path) else "no such file"
    if os.path.isdir(path):
        if not is_package(path):
            if os.path.lexists(init := os.path.join(path, INIT)) and (why := _why_not_a_file(init)):
                return f"its {INIT} {why}"
            return f"is a directory; a hook is a .py file, or a directory with an {INIT}"
        return "is a directory; its name must not end in .py" if path.endswith(".py") else None
    return None if os.path.isfile(path) else "is not a regular file; a hook is a .py file"


def approved_hook(path: str, trees: Iterable[SourceTree]) -> ApprovedFile | None:
    """Return the approved hook file at a path, or the `__init__.py` of the approved package there, if there is one."""
    return approved_file(trees, path) or approved_file(trees, os.path.join(path, INIT))


def named_by_projects(trees: Iterable[SourceTree]) -> set[str]:
    """Return the paths that the settings of approved projects name: a file that is not approved must not count there."""
    settings = [
        (tree.directory, file.data)
        for tree in trees
        if tree.files is not None and (file := tree.files.get(os.path.join(tree.directory, SETTINGS_FILE)))
    ]
    if not settings:
        return set()
    # Imported here, because most projects have no settings.
    from agent_hooks.trust.manifest import named_in_settings

    return {path for directory, data in settings for path in named_in_settings(data, directory)}


def approved_bytes(trees: Iterable[SourceTree]) -> dict[str, bytes]:
    """Return the bytes of all approved files by their paths and by their places."""
    return {
        name: file.data
        for tree in trees
        if tree.files is not None
        for path, file in tree.files.items()
        for name in (path, file.place)
    }
