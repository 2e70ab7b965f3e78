"""Text of a stranger at a terminal: each character that hides, moves or disguises text is marked by its number.

`harmless` is for single lines of tools and models.  A person who approves code needs more: also the characters that have
no width, or that look like a space, are shown, and a line is wrapped behind a margin that the text cannot fake.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

TAB = 8
# Letters and marks without any ink.  The other invisible characters are found by their category.
_NO_INK = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x180B, 0x180C, 0x180D, 0x180F),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)
_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}
# The marks of combining characters are put on the character before; more of them would cover other lines.
_MOST_MARKS = 2
_REVERSE, _PLAIN = "\x1b[7m", "\x1b[27m"
_ORDINARY = re.compile(r"[\t\n -~]*")


def decoded(data: bytes) -> str:
    """Return bytes as a text; a byte that is no UTF-8 becomes a surrogate, which `marked` shows."""
    return data.decode("utf-8", "surrogateescape")


def marked(text: str, *, colour: bool = False) -> str:
    """Return a text with `<U+202E>` for each control, invisible or directing character, except tab and newline.

    A byte that is no UTF-8 is `<FF>`; `colour`: the marks are shown in reverse, so that text cannot fake one.
    """
    if _ORDINARY.fullmatch(text):
        return text
    parts: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        hidden = category in _HIDDEN and char not in " \t\n"
        if not hidden and ord(char) not in _NO_INK and marks <= _MOST_MARKS:
            parts.append(char)
            continue
        name = f"<{ord(char) - 0xDC00:02X}>" if "\udc80" <= char <= "\udcff" else f"<U+{ord(char):04X}>"
        parts.append(f"{_REVERSE}{name}{_PLAIN}" if colour else name)
    return "".join(parts)


def one_line(text: str, *, colour: bool = False) -> str:
    """Return a text as one line: a newline or tab is marked too."""
    found = marked(text, colour=colour)
    return found.replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def wrapped(line: str, columns: int, *, colour: bool = False) -> Iterator[str]:
    """Yield a line without its end, in pieces that fit into the columns; tabs become spaces, and nothing is cut."""
    line = line.expandtabs(TAB) if line.isascii() else line.replace("\t", " " * TAB)
    if len(line) <= columns and _ORDINARY.fullmatch(line):
        yield line
        return
    piece: list[str] = []
    width = 0
    for char in line:
        shown = marked(char, colour=colour)
        needs = len(marked(char)) if shown != char else _width(char)
        if width + needs > columns and piece:
            yield _marks_limited("".join(piece))
            piece, width = [], 0
        piece.append(shown)
        width += needs
    yield _marks_limited("".join(piece))


def _marks_limited(text: str) -> str:
    """Return a piece of a line, with the marks of combining characters beyond the limit shown by number."""
    if text.isascii():
        return text
    parts: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        parts.append(char if marks <= _MOST_MARKS else f"<U+{ord(char):04X}>")
    return "".join(parts)


def _width(char: str) -> int:
    """Return the columns of a character that is shown as it is."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
