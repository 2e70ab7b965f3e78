"""The text of a JSON, JSONC or JSON5 file as a tree that loses no character.

Each value keeps its text, and each member of an object or list keeps the space and the comments around it.  So the tree
can be changed in one place, and `Node.text()` returns all other places as they were, to the byte.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, NoReturn

from msgspec import Struct

Dialect = Literal["json", "jsonc", "json5"]
"""`json`: strict; `jsonc`: with comments and commas behind the last member; `json5`: also single quotes and bare keys."""

_COMMENTS = r"//[^\r\n]*+|/\*.*?\*/"
_COMMENTS_5 = r"//[^\r\n\u2028\u2029]*+|/\*.*?\*/"
_SPACE_5 = r" \t\r\n\v\f\xa0\ufeff\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACES: dict[Dialect, re.Pattern[str]] = {
    "json": re.compile(r"[ \t\r\n]*+"),
    "jsonc": re.compile(rf"(?:[ \t\r\n]++|{_COMMENTS})*+", re.DOTALL),
    "json5": re.compile(rf"(?:[{_SPACE_5}]++|{_COMMENTS_5})*+", re.DOTALL),
}
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_STRING_5 = re.compile(r"""(["'])(?:(?!\1)[^\\\r\n]|\\(?:\r\n|.))*+\1""", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_5 = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile(r"(?:[^\W\d]|\$)[\w$\u200c\u200d]*")
"""A literal, or a bare key of JSON5."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_LINE_ENDS = ("\r\n", "\n", "\r", "\u2028", "\u2029")
# The space and the comments that end in the line in which they begin.
_SAME_LINE = re.compile(r"(?:[^\S\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_LAST_COMMENT = re.compile(r".*(?://|\*/)", re.DOTALL)


class Item(Struct):
    """One member of an object, or one item of a list.

    `lead`: the space and the comments before it, from the line of the member before.
    `key`: the text of its key with the colon and the space around it; empty for an item of a list.
    `name`: the key; empty for an item of a list.
    `middle`: the space and the comments between its value and its comma.
    `after`: the space and the comments behind it in its line.
    """

    lead: str
    key: str
    name: str
    value: Node
    middle: str = ""
    comma: bool = False
    after: str = ""

    def text(self) -> str:
        """Return the text of the member, with the space and the comments that belong to it."""
        return f"{self.lead}{self.key}{self.value.text()}{self.middle}{',' * self.comma}{self.after}"


class Node(Struct):
    """A value and its text.

    `value`: the value as data.
    `plain`: the text of a value that is no object and no list, or the brackets of one.
    `items`: the members; `None` for a value that is no object and no list.
    `head`: the space and the comments behind the opening bracket in its line.
    `tail`: the space and the comments before the closing bracket, from the line of the last member.
    """

    value: Any
    plain: str
    items: list[Item] | None = None
    head: str = ""
    tail: str = ""

    def text(self) -> str:
        """Return the text of the value."""
        if self.items is None:
            return self.plain
        return f"{self.plain[0]}{self.head}{''.join(each.text() for each in self.items)}{self.tail}{self.plain[1]}"


class Document(Struct):
    """The value of a file, and the space and the comments around it."""

    before: str
    body: Node
    after: str

    def text(self) -> str:
        """Return the text of the file."""
        return f"{self.before}{self.body.text()}{self.after}"


def read(text: str, dialect: Dialect) -> Document:
    """Return the tree of a text.  Raises `ValueError` with line and column, or `RecursionError`."""
    return _Reader(text, dialect).document()


def in_line(space: str) -> tuple[str, str]:
    """Split the space behind a member: the part in the member's line, and the rest, which begins with a line's end.

    Without a line's end, the first part ends with the last comment.
    """
    found = _SAME_LINE.match(space)
    assert found is not None
    if found.end() < len(space):
        return space[: found.end()], space[found.end() :]
    comment = _LAST_COMMENT.match(space)
    end = comment.end() if comment is not None else 0
    return space[:end], space[end:]


class _Reader:
    """Reads one text from its beginning to its end."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._at = 0
        self._space = _SPACES[dialect]
        self._five = dialect == "json5"
        self._string = _STRING_5 if self._five else _STRING
        self._number = _NUMBER_5 if self._five else _NUMBER
        self._trailing = dialect != "json"

    def document(self) -> Document:
        before = self._skip()
        body = self._value()
        after = self._skip()
        if self._at < len(self._text):
            self._fail("expected the end of the file")
        return Document(before, body, after)

    def _fail(self, expected: str) -> NoReturn:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        raise ValueError(f"{expected}: line {line} column {column}")

    def _skip(self) -> str:
        return self._take(self._space) or ""

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _value(self) -> Node:
        if (first := self._peek()) in ("{", "["):
            return self._members("{}" if first == "{" else "[]")
        if (text := self._take(self._string)) is not None:
            return Node(self._decoded(text), text)
        if (text := self._take(self._number)) is not None:
            return Node(_number(text), text)
        start = self._at
        if (text := self._take(_WORD)) not in _WORDS:
            self._at = start
            self._fail("expected a value")
        return Node(_WORDS[text], text)

    def _members(self, brackets: str) -> Node:
        self._at += 1
        items: list[Item] = []
        # The space up to a comment behind the bracket is split only if the rest of the line is empty.
        head, lead = in_line(self._skip())
        if "\n" not in lead and "\r" not in lead:
            head, lead = "", head + lead
        while self._peek() != brackets[1]:
            if items and not items[-1].comma:
                self._fail(f"expected a comma or {brackets[1]!r}")
            item = self._member(lead) if brackets == "{}" else Item(lead, "", "", self._value())
            items.append(item)
            lead = self._separator(item)
            if item.comma and self._peek() == brackets[1] and not self._trailing:
                self._fail("expected a member behind the comma")
        self._at += 1
        value = {each.name: each.value.value for each in items} if brackets == "{}" else [i.value.value for i in items]
        return Node(value, brackets, items, head, lead)

    def _member(self, lead: str) -> Item:
        start = self._at
        text = self._take(self._string)
        word = self._take(_WORD) if text is None and self._five else None
        if text is None and word is None:
            self._fail("expected a key in quotes")
        name = word if text is None else self._decoded(text)
        self._skip()
        if self._peek() != ":":
            self._fail("expected a colon")
        self._at += 1
        self._skip()
        return Item(lead, self._text[start : self._at], str(name), self._value())

    def _separator(self, item: Item) -> str:
        """Read up to the next member or the closing bracket; return the space that belongs to that."""
        space = self._skip()
        if self._peek() == ",":
            self._at += 1
            item.comma, item.middle = True, space
            space = self._skip()
            item.after, lead = in_line(space)
            # Without a line's end, a comment belongs to the next member.
            if "\n" not in lead and "\r" not in lead and self._peek() not in ("]", "}"):
                item.after, lead = "", space
            return lead
        item.after, lead = in_line(space)
        return lead

    def _decoded(self, text: str) -> str:
        if not self._five:
            return str(json.loads(text))
        decoded = _ESCAPE.sub(self._unescaped, text[1:-1])
        # Two escapes of surrogates are one character.
        return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    def _unescaped(self, found: re.Match[str]) -> str:
        if code := found[1] or found[2]:
            return chr(int(code, 16))
        if found[3] in _LINE_ENDS:
            return ""
        if found[3] in "123456789ux":
            self._fail(f"expected another escape than \\{found[3]} before")
        return _ESCAPES.get(found[3], found[3])


def _number(text: str) -> int | float:
    """Return a number of JSON or JSON5.  Raises `ValueError` for one with too many digits."""
    digits = text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return int(text, 16)
    return int(text) if digits.isdigit() else float(text.replace("Infinity", "inf"))
