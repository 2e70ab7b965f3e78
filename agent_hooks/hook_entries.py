"""The entries of `hooks` in a settings file: each stands for a file, a package, a directory, a glob or a module.

A glob has `*`, `?` and `[…]` within the names of directories and files, and `**` is no more than `*`.  In a directory,
and for a glob, a name that begins with `.` or `_` is no hook, nor is a package without `register`.  The names are read
by a function of the caller: from the disk, or from the files that a person has approved.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from importlib.machinery import ModuleSpec

from agent_hooks.hook_packages import INIT, is_hook_package
from agent_hooks.trees import SourceTree

MODULE = "module:"
"""The beginning of an entry that names a module of an installed package."""
Names = Callable[[str], Iterable[str]]
"""Returns the names in a directory, none for one that is not there."""
_MAGIC = re.compile(r"[*?[]")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def is_glob(entry: str) -> bool:
    """Tell whether an entry, as it is written, may be a glob."""
    return bool(_MAGIC.search(entry))


def pattern_of(path: str, *, is_directory: bool) -> str:
    """Return the pattern of the hooks in a directory, or the glob itself."""
    return os.path.join(escaped(path), "*") if is_directory else path


def escaped(path: str) -> str:
    """Return a pattern that only this path fits."""
    return glob.escape(path)


def matching(pattern: str, names: Names) -> list[str]:
    """Return the absolute paths that fit a pattern, sorted by directory; a last part without wildcards need not exist."""
    found = ["/"]
    for part in pattern.split("/"):
        if not part:
            continue
        if not is_glob(part):
            found = [os.path.join(above, part) for above in found]
            continue
        found = [os.path.join(above, name) for above in found for name in sorted(names(above)) if _fits(name, part)]
    return found


def listed_by(pattern: str, names: Names) -> list[str]:
    """Return the directories in which a new name could fit a pattern."""
    parts = pattern.split("/")
    return [
        directory
        for at, part in enumerate(parts)
        if is_glob(part)
        for directory in matching("/".join(parts[:at]) or "/", names)
    ]


def _fits(name: str, part: str) -> bool:
    """Tell whether a name fits a part of a pattern; only a dot matches a leading dot."""
    return (name[0] != "." or part[0] == ".") and fnmatchcase(name, part)


def hooks_in(pattern: str, names: Names, tree: SourceTree | None = None) -> list[str]:
    """Return the hook files and packages that fit a pattern; `tree`: the tree whose approved files alone count."""
    exact = not is_glob(pattern.rpartition("/")[2])
    return [path for path in matching(pattern, names) if _is_hook(path, tree, exact=exact)]


def _is_hook(path: str, tree: SourceTree | None, *, exact: bool) -> bool:
    if os.path.basename(path)[0] in "._" and not exact:
        return False
    if path.endswith(".py"):
        return os.path.lexists(path) if tree is None or tree.files is None else path in tree.files
    return is_hook_package(path, tree)


def names_on_disk(directory: str) -> list[str]:
    """Return the names in a directory of the disk."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


def names_in(tree: SourceTree) -> Names:
    """Return the function that lists the names of a tree: of an approved one, those of its approved files."""
    if tree.files is None:
        return names_on_disk

    def names(directory: str) -> list[str]:
        try:
            return tree.names(directory)
        except OSError:
            return []

    return names


def is_plain_directory(path: str, tree: SourceTree) -> bool:
    """Tell whether a path is a directory, and no package."""
    if tree.files is None:
        return os.path.isdir(path) and not os.path.isfile(os.path.join(path, INIT))
    return bool(names_in(tree)(path)) and os.path.join(path, INIT) not in tree.files


# ---- modules ---------------------------------------------------------------------------------------------------------


def module_path(name: str) -> str | None:
    """Return the file of an installed module, or the directory of a package; `None` for one that is not installed.

    Nothing is imported, and the current directory does not count: a module there may be a stranger's.
    """
    if not _NAME.fullmatch(name):
        return None
    here = {"", os.getcwd(), os.path.realpath(os.getcwd())}
    search: list[str] | None = [each for each in sys.path if each not in here]
    found = None
    full = ""
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        found = next(_specs(full, search), None)
        if found is None:
            return None
        search = None if found.submodule_search_locations is None else list(found.submodule_search_locations)
        if search is None and full != name:
            return None
    origin = None if found is None else found.origin
    if origin is None or not origin.endswith(".py"):
        return None
    return os.path.dirname(origin) if os.path.basename(origin) == INIT else origin


def _specs(name: str, search: list[str] | None) -> Iterator[ModuleSpec]:
    for finder in tuple(sys.meta_path):
        # An editable install may have a finder of its own, which knows its modules by their names.
        spec = getattr(finder, "find_spec", lambda *_: None)(name, search)
        if spec is not None and spec.origin not in (None, "built-in", "frozen"):
            yield spec


def why_no_module(entry: str) -> str:
    """Return why an entry `module:NAME` is no hook, and the remedy."""
    name = entry.removeprefix(MODULE)
    if module_path(name) is None:
        return f"no module {name!r} is installed for {sys.executable}; install its package there, or remove the entry"
    return (
        "a project's settings name it, and a module of an installed package counts only by your own settings: add "
        f'"{entry}" to hooks in ~/.agent/settings.json'
    )
