"""What a script is made of, as far as a guard cares.  Above: grammar, scan, interpret.  Below: nothing.

Words are kept as they were written; `words.py` undoes quotes and expansions once it is known what is assigned.
"""

from __future__ import annotations

from typing import Union

MAX_LENGTH = 128 * 1024  # characters of one command; a longer one is not judged but refused
MAX_CODE = 32 * 1024  # characters of one script without its here-documents
MAX_DEPTH = 40  # scripts within scripts, and groups within groups


class Unreadable(Exception):  # noqa: N818  # not an error: it is what the guard then says
    """The text is no shell script that can be read, or too deep or too long to judge."""


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
    """Assignments, words and redirections; `background` for `… &`."""

    __slots__ = ("assigns", "background", "redirects", "words")

    def __init__(self) -> None:
        self.assigns: list[tuple[str, str]] = []  # name (with `+` for appending), value; arrays keep their parentheses
        self.words: list[str] = []
        self.redirects: list[Redirect] = []
        self.background = False


class Sequence:
    """Nodes one after another, whatever is between them: `;`, `&&`, `||`, a newline, `then`."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes


class Pipe:
    """`a | b | c`."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes


class Group:
    """A loop, a condition, `{ … }` or `( … )` with its redirections; a `subshell` keeps its assignments to itself."""

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
    """Text that is only read, in which substitutions run all the same: conditions, arithmetic, the word of a `case`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


Node = Union[Simple, Sequence, Pipe, Group, Function, Loop, Data]  # noqa: UP007  # the classes are named before they exist


def spawns(body: Node, name: str) -> bool:
    """Tell whether a function starts itself in the background, or more than once at a time."""
    if isinstance(body, Simple):
        return body.background and bool(body.words) and body.words[0] == name
    if isinstance(body, Pipe):
        return sum(isinstance(each, Simple) and each.words[:1] == [name] for each in body.nodes) > 1
    if isinstance(body, Sequence):
        return any(spawns(each, name) for each in body.nodes)
    return isinstance(body, Group) and spawns(body.node, name)
