"""The nodes of a script that matter to a guard.

Words are kept as written.  `expand` undoes quotes and expansions later, when the values of variables are known.
"""

from __future__ import annotations

from typing import Union

MAX_LENGTH = 128 * 1024
"""Characters of one command; a longer command counts as undecidable."""
MAX_CODE = 32 * 1024
"""Characters of one script without its here-documents."""
MAX_DEPTH = 40
"""Groups within groups."""


class Unreadable(Exception):  # noqa: N818  # the guard turns it into a finding
    """The text is no shell script, or it is nested too deeply or too long to be judged."""


class Redirect:
    """`2> file`, `<< END` and the like.

    `body`: the text of a here-document or here-string; `quoted`: no substitution takes place in it.
    """

    __slots__ = ("body", "operator", "quoted", "target")

    def __init__(self, operator: str, target: str, body: str | None = None, *, quoted: bool = False) -> None:
        self.operator = operator
        self.target = target
        self.body = body
        self.quoted = quoted


class Simple:
    """A simple command.

    `assigns`: names, with a `+` behind them for appending, and values; arrays keep their parentheses; `background`:
    `… &`.
    """

    __slots__ = ("assigns", "background", "redirects", "words")

    def __init__(self) -> None:
        self.assigns: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.redirects: list[Redirect] = []
        self.background = False


class Sequence:
    """Nodes that run one after another, separated by `;`, `&&`, `||`, a newline or `then`."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes


class Pipe:
    """`a | b | c`."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes


class Group:
    """A loop, a condition, `{ … }` or `( … )` with its redirections; a `subshell` has variables of its own."""

    __slots__ = ("node", "redirects", "subshell")

    def __init__(self, node: Node, redirects: list[Redirect], *, subshell: bool = False) -> None:
        self.node = node
        self.redirects = redirects
        self.subshell = subshell


class Function:
    """`name() { … }`."""

    __slots__ = ("body", "name")

    def __init__(self, name: str, body: Node) -> None:
        self.name = name
        self.body = body


class Loop:
    """`for name in words; do …`."""

    __slots__ = ("body", "name", "words")

    def __init__(self, name: str, words: list[str], body: Node) -> None:
        self.name = name
        self.words = words
        self.body = body


class Data:
    """Text in which only the substitutions run: conditions, arithmetic, the word of a `case`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


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
