"""Tell the directories that are hooks, with `register` in an `__init__.py`, from other packages."""

from __future__ import annotations

import ast
import errno
import os
import stat
from collections.abc import Iterator

from agent_hooks.trees import SourceTree

INIT = "__init__.py"


def is_package(path: str) -> bool:
    """Tell whether `path` is a directory that can be a hook."""
    return os.path.isfile(os.path.join(path, INIT))


def is_hook_package(path: str, tree: SourceTree | None = None) -> bool:
    """Tell whether `path` is a directory that is meant as a hook, rather than a package that hooks import.

    This reads the `__init__.py` and runs nothing.  A file that cannot be read or parsed counts as a hook, because it may
    be a gate, and to load it reports the error; so does a link to nowhere.  `tree`: the source tree that the directory
    belongs to.
    """
    file = os.path.join(path, INIT)
    try:
        statements = ast.parse(_source(file, tree)).body
    except (FileNotFoundError, NotADirectoryError):
        return (tree is None or tree.files is None) and (_leads_nowhere(path) or _leads_nowhere(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(map(_binds_register, _at_the_top(statements)))


def _leads_nowhere(path: str) -> bool:
    return os.path.islink(path) and not os.path.exists(path)


def _source(path: str, tree: SourceTree | None) -> bytes:
    """Return the bytes of a file; raises `OSError`."""
    if tree is not None and tree.files is not None:
        if path not in tree.files:
            raise FileNotFoundError(path)
        return tree.files[path].data
    if not stat.S_ISREG(os.stat(path).st_mode):
        # To open a pipe would wait for ever.
        raise OSError(errno.EINVAL, "is not a regular file", path)
    with open(path, "rb") as file:
        return file.read()


def _at_the_top(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield statements and their inner nodes, except those inside functions and classes.

    The nodes that are left stand in a list, so that no depth of a statement ends the search.
    """
    left: list[ast.AST] = [*statements]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            left += ast.iter_child_nodes(node)


def _binds_register(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name="register") | ast.AsyncFunctionDef(name="register"):
            return True
        case ast.Name(id="register", ctx=ast.Store()):
            return True
        case ast.ImportFrom() | ast.Import():
            return any((alias.asname or alias.name) in ("register", "*") for alias in node.names)
    return False
