"""The mutants of a module: each is the module with one statement deleted, or with one condition negated.

Only statements in functions count.  A deleted statement becomes the body of `if False:`, so that its names stay local and
a generator stays a generator.  Some statements have no mutant, because deleting them cannot change anything: docstrings,
annotations, `pass`, `...`, a `return` of nothing or of `False` at a function's end, a `continue` at a loop's end.  Also
left out are calls of a logger, and `assert`, `raise AssertionError` and `raise NotImplementedError`: they state to a type
checker a fact that the design guarantees.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import Any, Literal, NamedTuple

Kind = Literal["deleted", "negated"]
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_UNREACHABLE = re.compile(r"(Assertion|NotImplemented)Error\b")
_NEVER = (ast.Pass, ast.Assert, ast.Global, ast.Nonlocal, ast.ClassDef, _Function)


class Mutant(NamedTuple):
    """One mutant of a module."""

    module: str
    """The path of the file, as given."""
    function: str
    """The qualified name of the innermost function."""
    kind: Kind
    text: str
    """The first line of the statement."""
    nth: int
    """Tells statements of one function with the same text apart; from 1."""
    line: int
    lines: range
    """The lines of the statement, or of its header if it holds others."""
    codes: tuple[tuple[str, int], ...]
    """The qualified name and first line of each function around the statement, from the outermost."""
    position: int
    """The place of the node in the order of `ast.walk`."""
    suspending: range
    """The lines of the innermost function if it can suspend, else none."""

    @property
    def key(self) -> str:
        """The mutant's name, which stays the same when lines move."""
        return f"{self.module}::{self.function}::{self.kind}::{self.text}::{self.nth}"

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.function}: {self.kind} `{self.text}`"


class _Place(NamedTuple):
    """Where a block of statements stands."""

    names: tuple[str, ...]
    codes: tuple[tuple[str, int], ...]
    in_function: bool
    ends_function: bool
    ends_loop: bool
    returns_bool: bool
    suspending: range


_TOP = _Place((), (), in_function=False, ends_function=False, ends_loop=False, returns_bool=False, suspending=range(0))


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Return the mutants of a module in the order of its lines."""
    tree = ast.parse(source)
    indexes = {id(node): index for index, node in enumerate(ast.walk(tree))}
    lines = source.splitlines()
    excluded = {number for number, line in enumerate(lines, 1) if "pragma: no cover" in line}
    counts: Counter[tuple[str, Kind, str]] = Counter()
    found = []
    for node, kind, place in _nodes(tree.body, _TOP):
        header = range(node.lineno, _end_of_header(node) + 1)
        if excluded.isdisjoint(header):
            function, text = place.codes[-1][0], lines[node.lineno - 1].strip()
            counts[function, kind, text] += 1
            nth = counts[function, kind, text]
            position = indexes[id(node)]
            found.append(
                Mutant(module, function, kind, text, nth, node.lineno, header, place.codes, position, place.suspending)
            )
    return sorted(found, key=lambda mutant: mutant.line)


def _end_of_header(node: ast.stmt) -> int:
    if isinstance(node, ast.Match):
        return max(node.lineno, node.cases[0].pattern.lineno - 1)
    body: list[ast.stmt] = getattr(node, "body", [])
    return max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno


def _nodes(body: list[ast.stmt], place: _Place) -> Iterator[tuple[ast.stmt, Kind, _Place]]:
    """Yield the statements of a block, and of all blocks in it, each with the kind of its mutant and its place."""
    for position, node in enumerate(body):
        last = position == len(body) - 1
        here = place._replace(ends_function=place.ends_function and last, ends_loop=place.ends_loop and last)
        if place.in_function and not _is_idle(node, here):
            yield node, "deleted", here
        if place.in_function and isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Constant):
            yield node, "negated", here
        if not _is_type_checking(node):
            yield from _nodes_inside(node, here)


def _nodes_inside(node: ast.stmt, here: _Place) -> Iterator[tuple[ast.stmt, Kind, _Place]]:
    if isinstance(node, _Function):
        name = ".".join([*here.names, node.name])
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        codes = (*here.codes, (name, first))
        names = (*here.names, node.name, "<locals>")
        returns_bool = node.returns is not None and ast.unparse(node.returns) == "bool"
        inside = _Place(
            names,
            codes,
            in_function=True,
            ends_function=True,
            ends_loop=False,
            returns_bool=returns_bool,
            suspending=_suspending(node),
        )
        yield from _nodes(node.body, inside)
    elif isinstance(node, ast.ClassDef):
        yield from _nodes(node.body, here._replace(names=(*here.names, node.name), in_function=False))
    elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
        yield from _nodes(node.body, here._replace(ends_function=False, ends_loop=True))
        yield from _nodes(node.orelse, here)
    elif isinstance(node, ast.Try | ast.TryStar):
        ends = not node.finalbody
        then = here._replace(ends_function=here.ends_function and ends, ends_loop=here.ends_loop and ends)
        first_part = then if not node.orelse else then._replace(ends_function=False, ends_loop=False)
        yield from _nodes(node.body, first_part)
        for handler in node.handlers:
            yield from _nodes(handler.body, then)
        yield from _nodes(node.orelse, then)
        yield from _nodes(node.finalbody, here)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield from _nodes(case.body, here)
    else:
        yield from _nodes(getattr(node, "body", []), here)
        yield from _nodes(getattr(node, "orelse", []), here)


def _suspending(node: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    """Return the lines of a function if it can suspend, else none."""
    suspends = isinstance(node, ast.AsyncFunctionDef) or any(
        isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node)
    )
    return range(node.lineno, (node.end_lineno or node.lineno) + 1) if suspends else range(0)


def _is_idle(node: ast.stmt, place: _Place) -> bool:
    """Tell whether deleting a statement changes nothing, or nothing that a test could see."""
    if isinstance(node, _NEVER) or _is_type_checking(node):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_logging(node.value)
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    if isinstance(node, ast.Return):
        value = node.value.value if isinstance(node.value, ast.Constant) else node.value
        return place.ends_function and (value is None or (value is False and place.returns_bool))
    if isinstance(node, ast.Continue):
        return place.ends_loop
    return (
        isinstance(node, ast.Raise) and node.exc is not None and _UNREACHABLE.match(ast.unparse(node.exc)) is not None
    )


def _is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _is_logging(node: ast.expr) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return ast.unparse(node.func.value).lower() in {"log", "logger", "_log", "_logger", "logging"}


# ---- applying one ----------------------------------------------------------------------------------------------------


def compiled(source: str, mutant: Mutant, filename: str) -> CodeType:
    """Return the code of the mutated module."""
    tree = ast.parse(source)
    node: Any = next(each for index, each in enumerate(ast.walk(tree)) if index == mutant.position)
    if mutant.kind == "negated":
        node.test = ast.UnaryOp(ast.Not(), node.test)
    else:
        tree = _Delete(node).visit(tree)
    return compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)


class _Delete(ast.NodeTransformer):
    def __init__(self, node: ast.stmt) -> None:
        self.node = node

    def visit(self, node: ast.AST) -> Any:
        if node is self.node:
            return ast.copy_location(ast.If(test=ast.Constant(False), body=[node], orelse=[]), node)
        return super().visit(node)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all that it holds."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)
