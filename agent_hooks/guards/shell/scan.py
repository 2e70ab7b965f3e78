"""Reads a script token by token, for scripts that the grammar cannot read.

The scanner knows quotes, substitutions, redirections, here-documents, pipes and the words that structure a script.  It
does not check that `if` has its `fi`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.script import Function, Loop, Node, Pipe, Redirect, Sequence, Simple, Unreadable

_OPERATOR = lazy_pattern(r"&&|\|\||;;&|;;|;&|\|&|[;&|()\n]")
_REDIRECT = lazy_pattern(r"(?:\d+|\{\w+\})?(<<<|<<-|<<|<>|<&|>&|>>|>\||&>>|&>|<|>)")
_ESAC = lazy_pattern(r"\besac\b")
_LOOP_HEAD = lazy_pattern(r"\s+(\w+)\s+in\b")
_FUNCTION_HEAD = lazy_pattern(r"\s+([^\s(){}]+)\s*(\(\s*\))?")
_HEREDOC_NAME = lazy_pattern(r"<<-?[ \t]*(['\"]?)([\w.-]+)\1")
_HEREDOC = lazy_pattern(r"<<(-?)(?!<)[ \t]*")
# Encloses the number of a here-document.
MARK = "\ue010"
_LIFTED = lazy_pattern(f"{MARK}(\\d+){MARK}")
_ASSIGN = lazy_pattern(r"([A-Za-z_]\w*(?:\[[^]=]*\])?)(\+?)=")
_STRUCTURE = {"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "{", "}", "!", "esac"}


def word_end(text: str, at: int, *, stops: str = " \t\n;&|()<>") -> int:
    """Return the index behind the word that begins at `at`; raises `Unreadable` for a quote without its end."""
    end = len(text)
    while at < end:
        char = text[at]
        if char in "<>" and text.startswith("(", at + 1):
            at = balanced(text, at + 1)
        elif char in stops:
            if char == "(" and at and text[at - 1] in "?*+@!=":
                # The parenthesis belongs to a pattern or an array.
                at = balanced(text, at)
                continue
            break
        elif char in _ENDS:
            at = _ENDS[char](text, at)
        else:
            at += 1
    return min(at, end)


def _escape_end(text: str, at: int) -> int:
    return at + 2


def _quote_end(text: str, at: int) -> int:
    end = text.find("'", at + 1)
    if end < 0:
        raise Unreadable("a ' has no end")
    return end + 1


def string_end(text: str, at: int) -> int:
    """Return the index behind the double quoted string that begins at `at`."""
    at += 1
    while True:
        if at >= len(text):
            raise Unreadable('a " has no end')
        char = text[at]
        if char == '"':
            return at + 1
        if char == "\\":
            at += 2
        elif char == "`":
            at = backtick_end(text, at)
        elif char == "$":
            at = dollar_end(text, at, quoted=True)
        else:
            at += 1


def backtick_end(text: str, at: int) -> int:
    """Return the index behind the backtick substitution that begins at `at`."""
    at += 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == "`":
            return at + 1
        else:
            at += 1
    raise Unreadable("a ` has no end")


def dollar_end(text: str, at: int, *, quoted: bool = False) -> int:
    """Return the index behind the `$…` that begins at `at`."""
    following = text[at + 1 : at + 2]
    if following == "(":
        return balanced(text, at + 1)
    if following == "{":
        return _brace_end(text, at + 1)
    if following == "'" and not quoted:
        at += 2
        while at < len(text) and text[at] != "'":
            at += 2 if text[at] == "\\" else 1
        if at >= len(text):
            raise Unreadable("a ' has no end")
        return at + 1
    if following == '"' and not quoted:
        return string_end(text, at + 1)
    return at + 1


def _brace_end(text: str, at: int) -> int:
    at += 1
    while at < len(text):
        char = text[at]
        if char == "}":
            return at + 1
        if char == "'" and text.find("'", at + 1) < 0:
            # A quote without its end is an apostrophe.
            at += 1
        elif char in _ENDS:
            at = _ENDS[char](text, at)
        else:
            at += 1
    raise Unreadable("a ${ has no end")


def balanced(text: str, at: int) -> int:
    """Return the index behind the parenthesis that begins at `at`; quoted parentheses do not count."""
    depth = 0
    start = at
    while at < len(text):
        char = text[at]
        if char == "(":
            depth += 1
            at += 1
        elif char == ")":
            depth -= 1
            at += 1
            if depth == 0:
                return at
        elif char in _ENDS:
            at = _ENDS[char](text, at)
        elif char == "#" and text[at - 1] in " \t\n;(" and text[start : start + 2] != "((":
            newline = text.find("\n", at)
            at = len(text) if newline < 0 else newline
        elif text.startswith("<<", at) and not text.startswith("<<<", at) and (here := _heredoc_end(text, at)):
            at = here
        elif text.startswith("case", at) and re.match(r"case\s+\S+\s+in\b", text[at : at + 200]):
            at = _case_end(text, at)
        else:
            at += 1
    raise Unreadable("a ( has no end")


# Functions that return the index behind a quoted or expanded part, by its first character.
_ENDS: dict[str, Callable[[str, int], int]] = {
    "\\": _escape_end,
    "'": _quote_end,
    '"': string_end,
    "`": backtick_end,
    "$": dollar_end,
}


def _case_end(text: str, at: int) -> int:
    end = _ESAC.search(text, at)
    if end is None:
        raise Unreadable("a case has no esac")
    return end.end()


def _heredoc_end(text: str, at: int) -> int | None:
    match = _HEREDOC_NAME.match(text, at)
    if match is None:
        return None
    close = re.compile(rf"^[ \t]*{re.escape(match[2])}[ \t]*(?=\)|$)", re.MULTILINE).search(text, match.end())
    return close.end() if close else None


def substitutions(text: str) -> list[str]:
    """Return the scripts of all `$(…)`, backticks, `<(…)` and `>(…)` in a text, nested in anything."""
    found: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        try:
            if char == "\\":
                at += 2
            elif char == "`":
                end = backtick_end(text, at)
                found.append(unescape_backticks(text[at + 1 : end - 1]))
                at = end
            elif char in "$<>" and text.startswith("(", at + 1) and not text.startswith("((", at + 1):
                end = balanced(text, at + 1)
                found.append(text[at + 2 : end - 1])
                at = end
            else:
                at += 1
        except Unreadable:
            at += 1
    return found


def unescape_backticks(script: str) -> str:
    """Return the script in the text between two backticks, without its escapes."""
    return re.sub(r"\\([\\`$])", r"\1", script)


class Scanner:
    """Turns a text into nodes."""

    def __init__(self, text: str, bodies: list[Body]) -> None:
        self._text = text
        self._bodies = bodies
        self._at = 0

    def script(self) -> Node:
        """Return the nodes of the whole script; raises `Unreadable`."""
        nodes: list[Node] = []
        while self._at < len(self._text):
            nodes.append(self._pipeline())
        return Sequence(nodes)

    def _pipeline(self) -> Node:
        stages: list[Node] = []
        while True:
            node, operator = self._simple()
            stages.append(node)
            if operator not in ("|", "|&"):
                return Pipe(stages) if len(stages) > 1 else node

    def _simple(self) -> tuple[Node, str]:
        """Read one simple command and the operator behind it."""
        simple = Simple()
        text = self._text
        loop: Loop | None = None
        while True:
            self._blanks()
            if self._at >= len(text):
                return self._done(simple, loop), ""
            if match := _REDIRECT.match(text, self._at):
                if not (match[1] in "<>" and text.startswith("(", match.end())):
                    self._redirect(simple, match)
                    continue
            elif match := _OPERATOR.match(text, self._at):
                operator = match[0]
                if operator == "(" and len(simple.words) == 1 and re.match(r"\(\s*\)", text[self._at :]):
                    self._at = text.index(")", self._at) + 1
                    name = simple.words.pop()
                    body, operator = self._simple()
                    return Function(name, Sequence([body])), operator
                if operator == "(" and not simple.words and text.startswith("((", self._at):
                    end = balanced(text, self._at)
                    simple.words += [":", f'"{text[self._at + 2 : end - 2]}"']
                    self._at = end
                    continue
                self._at = match.end()
                if operator == "(" and not simple.words and not simple.assigns:
                    continue
                simple.background = operator == "&"
                return self._done(simple, loop), operator
            start = self._at
            self._at = word_end(text, start)
            if self._at == start:
                # The character belongs to no word and to no operator, so it becomes a word of its own.
                self._at += 1
            word = text[start : self._at]
            if not simple.words:
                if word in _STRUCTURE:
                    continue
                if assign := _ASSIGN.match(word):
                    simple.assigns.append((assign[1] + assign[2], word[assign.end() :]))
                    continue
                if word in ("for", "select") and (head := _LOOP_HEAD.match(text, self._at)):
                    self._at = head.end()
                    loop = Loop(head[1], [], Sequence([]))
                    simple.words.append(":")
                    continue
                if word == "function" and (head := _FUNCTION_HEAD.match(text, self._at)):
                    self._at = head.end()
                    body, operator = self._simple()
                    return Function(head[1], Sequence([body])), operator
            simple.words.append(word)

    @staticmethod
    def _done(simple: Simple, loop: Loop | None) -> Node:
        if loop is None:
            return simple
        return Loop(loop.name, simple.words[1:], Sequence([]))

    def _blanks(self) -> None:
        text = self._text
        while self._at < len(text):
            if text[self._at] in " \t\r":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif text[self._at] == "#" and (self._at == 0 or text[self._at - 1] in " \t\n;&|("):
                newline = text.find("\n", self._at)
                self._at = len(text) if newline < 0 else newline
            else:
                return

    def _redirect(self, simple: Simple, match: re.Match[str]) -> None:
        self._at = match.end()
        self._blanks()
        start = self._at
        self._at = word_end(self._text, start)
        simple.redirects.append(redirect(match[1], self._text[start : self._at], self._bodies))


class Body(Struct, eq=False, frozen=True):
    """The text of a here-document; `quoted`: its delimiter is quoted, so nothing in the text is expanded."""

    text: str
    quoted: bool


def redirect(operator: str, target: str, bodies: list[Body]) -> Redirect:
    """Return a redirection; a lifted here-document gets its body back."""
    if operator == "<<<":
        return Redirect(operator, target, target)
    if operator == "<" and (match := _LIFTED.fullmatch(target)) and int(match[1]) < len(bodies):
        body = bodies[int(match[1])]
        return Redirect("<<", "", body.text, quoted=body.quoted)
    return Redirect(operator, target)


def lift(text: str) -> tuple[str, list[Body]]:
    """Lift the here-documents out of a script: `<< END` becomes `<` and a marker.  Raises `Unreadable`."""
    out: list[str] = []
    bodies: list[Body] = []
    waiting: list[tuple[str, bool]] = []
    at, kept = 0, 0
    while at < len(text):
        char = text[at]
        if char == "\n" and waiting:
            at += 1
            out.append(text[kept:at])
            for target, indented in waiting:
                body, at = _body(text, at, target, indented=indented)
                bodies.append(body)
            waiting.clear()
            kept = at
        elif char == "#" and (at == 0 or text[at - 1] in " \t\n;&|("):
            newline = text.find("\n", at)
            at = len(text) if newline < 0 else newline
        elif char == "(" and text.startswith("((", at):
            at = balanced(text, at)
        elif match := _HEREDOC.match(text, at):
            end = word_end(text, match.end())
            out += [text[kept:at], f"< {MARK}{len(bodies) + len(waiting)}{MARK}"]
            waiting.append((text[match.end() : end], match[1] == "-"))
            at = kept = end
        elif char in " \t\n;&|()<>":
            at += 3 if text.startswith("<<<", at) else 1
        else:
            at = max(word_end(text, at), at + 1)
    bodies += [Body("", quoted=True) for _ in waiting]
    return "".join([*out, text[kept:]]), bodies


def _body(text: str, at: int, target: str, *, indented: bool) -> tuple[Body, int]:
    delimiter = re.sub(r"['\"\\$]", "", target) if any(char in target for char in "'\"\\") else target
    lines: list[str] = []
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end].lstrip("\t") if indented else text[at:end]
        if line == delimiter:
            return Body("".join(lines), quoted=delimiter != target), end
        lines.append(line + "\n")
        at = end + 1
    return Body("".join(lines), quoted=delimiter != target), len(text)


def scan(text: str, bodies: list[Body]) -> Node:
    """Read a script whose here-documents are lifted; raises `Unreadable`."""
    return Scanner(text, bodies).script()
