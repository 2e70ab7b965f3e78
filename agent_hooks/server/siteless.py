"""The fast start of a Python that judges one event: it starts without `site`.

At each start, `site` searches for the directories of installed packages and reads the `.pth` files in them.  Instead,
this is done once, when the client is written, and the result becomes a part of the command line.  If an import fails all
the same, `__main__` runs `site` after all.

A process for one event takes 54.3 instead of 56.9 ms this way (`python -m benchmarks bridge`): the target, 1.25 times a
bare start with the same imports, needs that.
"""

from __future__ import annotations

import os
import site
import sys
from functools import cache
from importlib.machinery import PathFinder

ISOLATED = ["-I"]
"""No variables of Python, no current directory, no packages below the home directory."""
_NEEDED = ("agent_hooks", "msgspec")
# These files serve only to build packages.  If one is needed, its module is found when it is imported.
_LEFT_OUT = ("distutils-precedence.pth", "_virtualenv.pth")
_PROGRAM = """\
import sys
sys.path += {paths!r}
sys.prefix, sys.exec_prefix = {prefixes!r}
for line in {lines!r}:
    try:
        exec(line)
    except Exception:  # removed or changed since
        pass
from importlib.machinery import SourceFileLoader
exec(SourceFileLoader("__main__", {file!r}).get_code("__main__"))
"""


@cache
def start_of(file: str) -> list[str]:
    """Return the arguments with which this Python runs a program of the package, whose bytecode it keeps.

    The paths come from the directories of `site`, and not from this process's `sys.path`, because a project's settings
    may set PYTHONPATH.  If the package is in none of these directories, the arguments start Python with `site`.
    """
    if sys.flags.no_site or not _lives_in(_found(of_user=True)[0]):
        return [*isolating(), file]
    paths, lines = _found(of_user=isolating() != ISOLATED)
    program = _PROGRAM.format(paths=paths, lines=lines, prefixes=(sys.prefix, sys.exec_prefix), file=file)
    return [*isolating(), "-S", "-c", program]


@cache
def isolating() -> list[str]:
    """Return the options of Python with which no file in the project or on PYTHONPATH can replace a module of ours.

    The person's own packages, which Python finds by HOME, count only if this package is one of them.
    """
    return ISOLATED if _lives_in(_found(of_user=False)[0]) else ["-P", "-E"]


def _lives_in(paths: list[str]) -> bool:
    return all(PathFinder.find_spec(name, paths) is not None for name in _NEEDED)


def _found(*, of_user: bool) -> tuple[list[str], list[str]]:
    """Return the directories that `site` would add to the path, and the lines that it would run, in its order.

    `of_user`: also those of the person's own packages.
    """
    paths: list[str] = []
    lines: list[str] = []
    own = [site.getusersitepackages()] if of_user and site.ENABLE_USER_SITE else []
    for directory in filter(os.path.isdir, [*own, *site.getsitepackages()]):
        paths.append(directory)
        for name in sorted(os.listdir(directory)):
            if name.endswith(".pth") and not name.startswith(".") and name not in _LEFT_OUT:
                _read(directory, name, paths, lines)
    lines += [f"import {name}" for name in ("sitecustomize", "usercustomize") if PathFinder.find_spec(name, paths)]
    return list(dict.fromkeys(paths)), lines


def _read(directory: str, name: str, paths: list[str], lines: list[str]) -> None:
    try:
        with open(os.path.join(directory, name), encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        # If an import then fails, `__main__` runs `site`.
        return
    for line in text.splitlines():
        path = os.path.abspath(os.path.join(directory, line.rstrip()))
        if line.startswith(("import ", "import\t")):
            lines.append(line)
        elif line.strip() and not line.startswith("#") and os.path.exists(path):
            paths.append(path)
