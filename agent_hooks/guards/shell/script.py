"""The nodes of a script that matter to a guard.

Words are kept as written.  `expand` undoes quotes and expansions later, when the values of variables are known.
"""

from __future__ import annotations

from typing import Union

from msgspec import Struct

MAX_LENGTH = 128 * 1024
"""Characters of one command; a longer command counts as undecidable."""
MAX_CODE = 32 * 1024
"""Characters of one script without its here-documents."""
MAX_DEPTH = 40
"""Groups within groups."""


class Unreadable(Exception):  # noqa: N818  # the guard turns it into a finding
    """The text is no shell script, or it is nested too deeply or too long to be judged."""


class Redirect(Struct, eq=False):
    """`2> file`, `<< END` and the like.

    `body`: the text of a here-document or here-string; `quoted`: no substitution takes place in it.
    """

    operator: str
    target: str
    body: str | None = None
    quoted: bool = False


class Simple(Struct, eq=False):
    """A simple command.

    `assigns`: names, with a `+` behind them for appending, and values; arrays keep their parentheses; `background`:
    `… &`.
    """

    assigns: list[tuple[str, str]] = []
    words: list[str] = []
    redirects: list[Redirect] = []
    background: bool = False


class Sequence(Struct, eq=False):
    """Nodes that run one after another, separated by `;`, `&&`, `||`, a newline or `then`."""

    nodes: list[Node]


class Pipe(Struct, eq=False):
    """`a | b | c`."""

    nodes: list[Node]


class Group(Struct, eq=False):
    """A loop, a condition, `{ … }` or `( … )` with its redirections; a `subshell` has variables of its own."""

    node: Node
    redirects: list[Redirect]
    subshell: bool = False


class Function(Struct, eq=False):
    """`name() { … }`."""

    name: str
    body: Node


class Loop(Struct, eq=False):
    """`for name in words; do …`."""

    name: str
    words: list[str]
    body: Node


class Data(Struct, eq=False):
    """Text in which only the substitutions run: conditions, arithmetic, the word of a `case`."""

    text: str


Node = Union[Simple, Sequence, Pipe, Group, Function, Loop, Data]  # noqa: UP007  # forward references


def spawns(body: Node, name: str) -> bool:
    """Return whether a function starts itself in the background, or more than once at a time."""
    if isinstance(body, Simple):
        return body.background and bool(body.words) and body.words[0] == name
    if isinstance(body, Pipe):
        return sum(isinstance(each, Simple) and each.words[:1] == [name] for each in body.nodes) > 1
    if isinstance(body, Sequence):
        return any(spawns(each, name) for each in body.nodes)
    return isinstance(body, Group) and spawns(body.node, name)
