"""Find the programs that this package runs for itself, where no project can put one of its own in their place.

A project may come first on the PATH: by `.`, by an empty entry, by an activated environment inside of it.  So the entries
that are relative or lie in the working tree are skipped.
"""

from __future__ import annotations

import os

_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin", "/opt/local/bin", "/run/current-system/sw/bin")
"""The directories of programs that belong to no project, even if a project lies around them."""


def find_program(name: str, *, outside: str | None, path: str | None = None) -> str | None:
    """Return the absolute path of the first program `name` on the PATH that is not one of a project, or `None`.

    `outside`: a directory of the project, the working directory for example; the program lies outside of the tree around
    it (see `tree_of`).  With `None`, only relative entries of the PATH are skipped.  `path`: the PATH to search, this
    process's by default.
    """
    tree = None if outside is None else tree_of(outside)
    found = os.environ.get("PATH", os.defpath) if path is None else path
    for directory in filter(os.path.isabs, found.split(os.pathsep)):
        program = os.path.join(directory, name)
        if os.path.isfile(program) and os.access(program, os.X_OK) and not _is_theirs(program, tree):
            return program
    return None


def _is_theirs(program: str, tree: str | None) -> bool:
    """Tell whether a program is in a project's tree, or a link in the tree or into it leads to the program."""
    if tree is None or os.path.dirname(program) in _SYSTEM:
        return False
    parts = program.split("/")
    return any(is_in(os.path.realpath("/".join(parts[:end])), tree) for end in range(2, len(parts) + 1))


def safe_path(outside: str | None) -> str:
    """Return this process's PATH without the entries that are relative or lie in the tree around `outside`."""
    tree = None if outside is None else tree_of(outside)
    entries = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    return os.pathsep.join(entry for entry in entries if not _is_theirs(os.path.join(entry, "x"), tree))


def system_program(name: str) -> str | None:
    """Return the path of a program in a directory of the system, or `None`; the PATH does not matter."""
    return find_program(name, outside=None, path=os.pathsep.join(_SYSTEM))


def tree_of(directory: str) -> str | None:
    """Return the working tree that a project's files lie in: the outermost directory above with a `.git`, or itself.

    The home directory and the directories above it are no project, also when they have a `.git`; for these the result is
    `None`.  The path is absolute, without links.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    here = os.path.realpath(directory)
    tree = None if is_in(home, here) else here
    while tree is not None and (here := os.path.dirname(here)) != os.path.sep and not is_in(home, here):
        if os.path.lexists(os.path.join(here, ".git")):
            tree = here
    return tree


def is_in(path: str, tree: str) -> bool:
    """Tell whether an absolute path is `tree` or lies below it."""
    return f"{path}/".startswith(f"{tree.rstrip('/')}/")
