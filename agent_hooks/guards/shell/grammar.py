"""Reads a script with tree-sitter's grammar of bash, and with the scanner where the grammar fails.

The grammar gives only the structure.  Words are kept as written, because the grammar misses some substitutions inside
them, for example backticks in `${x:-…}`; `expand` finds those.
"""

from __future__ import annotations

import re
from typing import Any

import tree_sitter
import tree_sitter_bash

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.limit import Limit
from agent_hooks.guards.shell.scan import Body, lift, redirect, scan
from agent_hooks.guards.shell.script import (
    MAX_CODE,
    MAX_DEPTH,
    Data,
    Function,
    Group,
    Loop,
    Node,
    Pipe,
    Sequence,
    Simple,
    Unreadable,
)

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
_REDIRECTS = {"file_redirect", "herestring_redirect"}
_MARKS = "; && || ;; ;& ;;& | |& & ! { } ( ) (( ))"
_STRUCTURE = "if then elif else fi while until for select in do done case esac function comment"
_PUNCTUATION = {"\n", *_MARKS.split(), *_STRUCTURE.split()}
# The grammar misreads these without an error: `$"…"`, a continued line, a backslash that begins a command.
_HARD = lazy_pattern(r"\$\"|\bcoproc\b|\\\n|[\n;&|]\s*\\")
# Bytes of a text that the parser gets at a time.
_PIECE = 1024
# Characters; the grammar reads any shorter text quickly.
_SHORT = 1000
# In a longer text: the time that the grammar needs after an error grows with the square of their number.
MAX_OPERATORS = 250
_OPERATOR = lazy_pattern(r"[^\w\s./:,@%+-]|\n")
_ASSIGN = lazy_pattern(r"([A-Za-z_]\w*(?:\[[^]=]*\])?)(\+?)=")
_QUICK = lazy_pattern(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:@%+,= -]*", re.ASCII)
_KEYWORDS = {"if", "for", "while", "until", "case", "function", "select", "time", "coproc", "then", "do"}


def parse(text: str, limit: Limit | None = None) -> Node:
    """Return the nodes of a script; a command of plain words is read without the grammar.

    Raises `Unreadable`, also when no time is left.
    """
    return _quick(text) or read(text, limit) if text.strip() else Sequence([])


def _quick(text: str) -> Simple | None:
    """Return the node of a command line of plain words, `None` for any other script."""
    if len(text) > MAX_CODE or not _QUICK.fullmatch(text):
        return None
    simple = Simple()
    simple.words = text.split()
    return None if not simple.words or simple.words[0] in _KEYWORDS or "=" in simple.words[0] else simple


def read(text: str, limit: Limit | None = None) -> Node:
    """Return the nodes of a script; raises `Unreadable`, also when no time is left."""
    bodies: list[Body] = []
    if "<<" in text:
        text, bodies = lift(text)
    if len(text) > MAX_CODE:
        raise Unreadable(f"the script is longer than {MAX_CODE // 1024} KiB; put it into a file")
    if _HARD.search(text) or (len(text) > _SHORT and len(_OPERATOR.findall(text)) > MAX_OPERATORS):
        return scan(text, bodies)
    data = text.encode("utf-8", "surrogatepass")
    root = _PARSER.parse(data if limit is None or len(data) <= _SHORT else _Pieces(data, limit)).root_node
    if limit is not None:
        limit.check()
    if root.has_error:
        return scan(text, bodies)
    return _Walk(bodies).sequence(root.children, 0)


class _Pieces:
    """Gives a text to the parser piece by piece; when no time is left, the text ends, and with it the parser."""

    def __init__(self, data: bytes, limit: Limit) -> None:
        self._data = data
        self._limit = limit

    def __call__(self, at: int, place: object) -> bytes:
        return b"" if self._limit.passed else self._data[at : at + _PIECE]


class _Walk:
    """Turns the grammar's tree into nodes."""

    def __init__(self, bodies: list[Body]) -> None:
        self._bodies = bodies

    def sequence(self, children: list[Any], depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise Unreadable("groups are nested too deeply")
        nodes: list[Node] = []
        for child in children:
            kind = child.type
            if kind == "&":
                if nodes and isinstance(nodes[-1], Simple):
                    nodes[-1].background = True
            elif kind not in _PUNCTUATION:
                nodes.append(self.node(child, depth + 1))
        return nodes[0] if len(nodes) == 1 else Sequence(nodes)

    def node(self, node: Any, depth: int) -> Node:
        kind = node.type
        if kind in ("command", "declaration_command", "unset_command"):
            return self._command(node)
        if kind == "variable_assignment":
            return self._add_assign(Simple(), node)
        if kind == "variable_assignments":
            simple = Simple()
            for child in node.children:
                self._add_assign(simple, child)
            return simple
        if kind == "redirected_statement":
            return self._redirected(node, depth)
        if kind == "pipeline":
            stages = [self.node(child, depth + 1) for child in node.children if child.type not in ("|", "|&")]
            return self._join(stages)
        if kind == "function_definition":
            body = node.child_by_field_name("body")
            return Function(_text(node.child_by_field_name("name")), self.sequence([body], depth + 1))
        if kind == "for_statement":
            words = [_text(child) for child in node.children_by_field_name("value")]
            body = self.sequence(node.child_by_field_name("body").children, depth + 1)
            return Loop(_text(node.child_by_field_name("variable")), words, body)
        if kind == "subshell":
            return Group(self.sequence(node.children, depth + 1), [], subshell=True)
        if kind in ("test_command", "c_style_for_statement"):
            parts: list[Node] = [Data(_text(node))]
            body = node.child_by_field_name("body")
            return Sequence([*parts, self.sequence(body.children, depth + 1)]) if body is not None else parts[0]
        if kind in ("case_statement", "case_item"):
            return self._case(node, depth)
        if kind in ("list", "program", "compound_statement", "do_group", "if_statement", "while_statement", "elif_clause",
                    "else_clause", "negated_command"):  # fmt: skip
            return self.sequence(node.children, depth + 1)
        return Data(_text(node))

    def _case(self, node: Any, depth: int) -> Node:
        body = [child for child in node.children if child.is_named and not _is_field(node, child, "value")]
        words = [Data(_text(child)) for child in node.children_by_field_name("value")]
        rest = self.sequence(body, depth + 1)
        return Sequence([*words, rest])

    def _command(self, node: Any) -> Simple:
        simple = Simple()
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment" and node.type == "command" and not simple.words:
                self._add_assign(simple, child)
            elif kind in _REDIRECTS:
                self._add_redirect(simple, child)
            elif kind != "comment":
                text = _text(child)
                if not simple.words and kind == "command_name" and (match := _ASSIGN.match(text)):
                    simple.assigns.append((match[1] + match[2], text[match.end() :]))
                else:
                    simple.words.append(text)
        return simple

    @staticmethod
    def _add_assign(simple: Simple, node: Any) -> Simple:
        text = _text(node)
        if match := _ASSIGN.match(text):
            simple.assigns.append((match[1] + match[2], text[match.end() :]))
        else:
            simple.words.append(text)
        return simple

    def _redirected(self, node: Any, depth: int) -> Node:
        body = node.child_by_field_name("body")
        inner: Node = Simple() if body is None else self.node(body, depth + 1)
        holder = Simple()
        for child in node.children:
            if child.type in _REDIRECTS:
                self._add_redirect(holder, child)
        target = inner
        # Redirections bind to the last stage of a pipeline, and to the last command of a list.
        while isinstance(target, Pipe | Sequence) and target.nodes and body.type in ("pipeline", "list"):
            target = target.nodes[-1]
        if isinstance(target, Simple):
            target.redirects += holder.redirects
            target.words += holder.words
        elif isinstance(target, Group):
            target.redirects += holder.redirects
        else:
            inner = Group(inner, holder.redirects)
        return inner

    def _add_redirect(self, simple: Simple, node: Any) -> None:
        """Add a redirection, and the words behind it, to a command."""
        targets = [_text(child) for child in node.named_children if child.type != "file_descriptor"]
        following = node.next_sibling
        if (
            len(targets) > 1
            and targets[-1].isdigit()
            and following is not None
            and following.start_byte == node.end_byte
        ):
            # This is the file descriptor of the next redirection.
            targets.pop()
        operator = next(child.type for child in node.children if not child.is_named)
        simple.redirects.append(redirect(operator, targets[0] if targets else "", self._bodies))
        simple.words += targets[1:]

    @staticmethod
    def _join(stages: list[Node]) -> Node:
        """Return a pipeline; of a list before it, only the last command belongs to the pipe."""
        head: list[Node] = []
        first = stages[0]
        if isinstance(first, Sequence) and len(stages) > 1 and first.nodes:
            head, stages = first.nodes[:-1], [first.nodes[-1], *stages[1:]]
        elif isinstance(first, Pipe):
            stages = [*first.nodes, *stages[1:]]
        pipe = Pipe(stages) if len(stages) > 1 else stages[0]
        return Sequence([*head, pipe]) if head else pipe


def _is_field(node: Any, child: Any, name: str) -> bool:
    return any(child == each for each in node.children_by_field_name(name))


def _text(node: Any) -> str:
    return node.text.decode("utf-8", "surrogatepass")  # type: ignore[no-any-return]  # tree-sitter's text is bytes
