"""Tell the directories that are hooks, with `register` in an `__init__.py`, from other packages."""

from __future__ import annotations

import ast
import os

from agent_hooks.trees import SourceTree

INIT = "__init__.py"


def is_package(path: str) -> bool:
    """Tell whether `path` is a directory that can be a hook."""
    return os.path.isfile(os.path.join(path, INIT))


def is_hook_package(path: str, tree: SourceTree | None = None) -> bool:
    """Tell whether `path` is a directory that is meant as a hook, rather than a package that hooks import.

    This reads the `__init__.py` and runs nothing.  A file that cannot be parsed counts as a hook, because it may be a
    gate, and to load it reports the error.  `tree`: the source tree that the directory belongs to.
    """
    try:
        statements = ast.parse(_source(os.path.join(path, INIT), tree)).body
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(_binds_register(node) for statement in statements for node in _at_the_top(statement))


def _source(path: str, tree: SourceTree | None) -> bytes:
    """Return the bytes of a file; raises `OSError`."""
    if tree is not None and tree.files is not None:
        if path not in tree.files:
            raise FileNotFoundError(path)
        return tree.files[path].data
    with open(path, "rb") as file:
        return file.read()


def _at_the_top(node: ast.AST) -> list[ast.AST]:
    """Return a statement and its inner nodes, except those inside functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return [node]
    return [node, *(inner for child in ast.iter_child_nodes(node) for inner in _at_the_top(child))]


def _binds_register(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name="register") | ast.AsyncFunctionDef(name="register"):
            return True
        case ast.Name(id="register", ctx=ast.Store()):
            return True
        case ast.ImportFrom() | ast.Import():
            return any((alias.asname or alias.name) in ("register", "*") for alias in node.names)
    return False
