"""The places where the syntax of a file binds a global name.

The search keeps a list of the nodes that are left, so that no depth of an expression ends it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable


class _Scope:
    """A scope and its bindings of the name; `is_global`: whether they bind the global name."""

    def __init__(self, *, is_global: bool = False) -> None:
        self.is_global = is_global
        self.bound: list[ast.expr | ast.stmt] = []


def bindings(tree: ast.Module, name: str) -> list[ast.expr | ast.stmt]:
    """Return the nodes that bind the global `name`, in the order of their lines."""
    module = _Scope(is_global=True)
    scopes = [module]
    # Each node with its scope and the statement or expression that stands for its line.
    left: list[tuple[ast.AST, _Scope, ast.expr | ast.stmt]] = [(each, module, each) for each in tree.body]
    while left:
        node, scope, place = left.pop()
        if isinstance(node, ast.expr | ast.stmt):
            place = node
        if _binds(node, name):
            scope.bound.append(place)
        if isinstance(node, ast.Global) and name in node.names:
            scope.is_global = True
        inside = _inside(node)
        if inside:
            scopes.append(inner := _Scope())
            left += [(each, inner, place) for each in inside]
        left += [(each, scope, place) for each in _around(node)]
    found = [each for scope in scopes if scope.is_global for each in scope.bound]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def _inside(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that have a scope of their own."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return list(node.body)
    return [node.body] if isinstance(node, ast.Lambda) else []


def _around(node: ast.AST) -> Iterable[ast.AST]:
    """Return the parts of a node that are in its scope: of a function, for example, the defaults and decorators.

    A variable of a comprehension binds nothing outside of it; an assignment expression in it does.
    """
    inside = {id(each) for each in _inside(node)}
    if isinstance(node, ast.comprehension):
        return [node.iter, *node.ifs]
    return [each for each in ast.iter_child_nodes(node) if id(each) not in inside]


def _binds(node: ast.AST, name: str) -> bool:
    """Tell whether a node itself binds the name in its scope."""
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Import):
        return any((each.asname or each.name.partition(".")[0]) == name for each in node.names)
    if isinstance(node, ast.ImportFrom):
        return any((each.asname or each.name) == name for each in node.names)
    if isinstance(node, ast.MatchMapping):
        return node.rest == name
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
    return isinstance(node, named) and node.name == name
