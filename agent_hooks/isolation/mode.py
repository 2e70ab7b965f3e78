"""Whether a hook runs inside of the agent or in a process of its own.

A file asks for a process by a literal of its own, `ISOLATION = "process"`, which is read from the syntax before any code
of the file runs.  The person's settings can ask for it too, and the stricter of the two counts.  A file with a header,
which names packages of its own, always runs in a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from agent_hooks.errors import AgentHooksError, shown
from agent_hooks.trust.header import has_header

if TYPE_CHECKING:
    import ast

Isolation = Literal["inline", "process"]
NAME = "ISOLATION"
MODES = ("inline", "process")


class IsolationError(AgentHooksError):
    """A file's `ISOLATION` cannot be read; `line`: the line where it stands, if that is known."""

    def __init__(self, text: str, line: int | None) -> None:
        super().__init__(text)
        self.line = line


def mode_of(source: bytes, wanted: Isolation | None = None) -> Isolation:
    """Return how a hook runs; `wanted`: the mode of the person's settings, if they name one.

    Raises `IsolationError` when the file's own mode is not a literal.
    """
    own = literal_of(source)
    return "process" if "process" in (own, wanted) or has_header(source) else "inline"


def literal_of(source: bytes) -> Isolation | None:
    """Return the mode that a file asks for, `None` when it does not name one or is no Python; see `mode_of`."""
    # Most hooks do not name it, and a parse takes longer than loading their bytecode.
    if not _may_name_it(source):
        return None
    # Imported here, as above.
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # The import of the file tells its author.
        return None
    except (RecursionError, MemoryError):
        text = f"{NAME} cannot be read, because the file is nested too deeply; split its deepest expression"
        raise IsolationError(text, None) from None
    # Imported here, as above.
    from agent_hooks.isolation.bindings import bindings

    found = bindings(tree, NAME)
    if not found:
        return None
    first = found[0]
    if len(found) > 1:
        raise IsolationError(f"{NAME} is set twice; the second time here", found[1].lineno)
    value = _assigned(tree, first)
    if not isinstance(value, ast.Constant) or value.value not in MODES:
        raise IsolationError(
            f'{NAME} is a literal at the top of the file, {NAME} = "process" or "inline", not {shown(_text(value))}',
            first.lineno,
        )
    return "process" if value.value == "process" else "inline"


def _may_name_it(source: bytes) -> bool:
    """Tell whether a file may name its mode.

    Python takes an identifier in full-width letters for the same one, and a declared encoding can hide any text.
    """
    return NAME.encode() in source or not source.isascii() or any(b"coding" in line for line in _first_lines(source))


def _first_lines(source: bytes) -> list[bytes]:
    """Return the lines where Python looks for the encoding of a file, and perhaps some more."""
    return source[:1000].splitlines()[:2]


def _assigned(tree: ast.Module, name: ast.AST) -> ast.expr | None:
    """Return the value that a statement at the top of a file assigns to `name` alone, `None` without such a statement."""
    import ast

    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(each is name for each in statement.targets):
            return statement.value
        if isinstance(statement, ast.AnnAssign) and statement.target is name:
            return statement.value
    return None


def _text(value: Any) -> str:
    if value is None:
        return "set in another way"
    import ast

    try:
        return ast.unparse(value)
    except RecursionError:
        return "a deep expression"
