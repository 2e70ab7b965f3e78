"""How a Python starts that judges one event: without `site`, whose work is done once, when the client is written.

At every start `site` looks for the directories of installed packages and reads the `.pth` files in them.  What that
comes to is written into the start instead; `__main__` lets `site` do its work after all when an import finds nothing.
Above: stub.  Below: nothing of the package.
"""

from __future__ import annotations

import os
import site
import sys
from functools import cache
from importlib.machinery import PathFinder

_NEEDED = ("agent_hooks", "msgspec")
_LEFT_OUT = ("distutils-precedence.pth", "_virtualenv.pth")  # for who builds packages; found when it is imported
_PROGRAM = """\
import sys
sys.path += {paths!r}
sys.prefix, sys.exec_prefix = {prefixes!r}
for line in {lines!r}:
    try:
        exec(line)
    except Exception:  # it is gone, or another one now
        pass
from importlib.machinery import SourceFileLoader
exec(SourceFileLoader("__main__", {file!r}).get_code("__main__"))
"""


@cache
def start_of(file: str) -> list[str]:
    """Return the arguments with which this Python runs a program of the package, whose bytecode it keeps.

    -P, -E: a file of the project must not pass for a module of ours, nor one that PYTHONPATH leads to, which a project's
    settings may set.  For the same reason nothing here comes from this process's `sys.path`, but from where `site` looks.
    With `site`, where the package is not found there.
    """
    paths, lines = _found()
    if sys.flags.no_site or any(PathFinder.find_spec(name, paths) is None for name in _NEEDED):
        return ["-P", "-E", file]
    program = _PROGRAM.format(paths=paths, lines=lines, prefixes=(sys.prefix, sys.exec_prefix), file=file)
    return ["-P", "-E", "-S", "-c", program]


def _found() -> tuple[list[str], list[str]]:
    """Return the directories that `site` would add, and the lines that it would run, in its order."""
    paths: list[str] = []
    lines: list[str] = []
    own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
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
    except (OSError, UnicodeDecodeError):  # what it says is found when it is imported
        return
    for line in text.splitlines():
        path = os.path.abspath(os.path.join(directory, line.rstrip()))
        if line.startswith(("import ", "import\t")):
            lines.append(line)
        elif line.strip() and not line.startswith("#") and os.path.exists(path):
            paths.append(path)
