"""The words and texts of a shell command, and their marks.

A text that cannot be known before the command runs becomes `UNKNOWN`, one character that stands for any text.  Each word
keeps marks of its origin: `taint` (downloaded, decoded, …), `unsure` (a default that a variable from outside may
replace) and `pattern` (a glob).
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN

NOTHING: frozenset[str] = frozenset()
TYPED = frozenset({"typed"})
"""The taint of a text that the agent may type later, past all hooks."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ANSI = lazy_pattern(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)


class Word(str):
    """A word as the command gets it."""

    taint: frozenset[str] = NOTHING
    unsure = False
    pattern = False

    @property
    def known(self) -> bool:
        """Return whether the whole text is known."""
        return UNKNOWN not in self and not self.unsure


def marked(text: str, origin: Word) -> Word:
    """Return a word with the taint and the marks of the word that it was made from."""
    word = Word(text)
    word.taint, word.unsure, word.pattern = origin.taint, origin.unsure, origin.pattern
    return word


def below(root: Word, name: str) -> Word:
    """Return the word for a file called `name` in the directory `root`."""
    word = Word(f"{root.rstrip('/')}/{name.lstrip('*/') if '/' in name else name}" if root != "/" else f"/{name}")
    word.pattern = True
    word.unsure = root.unsure
    return word


class Text:
    """The text that a program prints or that a variable holds; `None` for unknown.

    `file`: the path of the file on the disk that holds an unknown text, if it is known.
    """

    __slots__ = ("file", "taint", "text", "unsure")

    def __init__(self, text: str | None, taint: frozenset[str] = NOTHING, *, unsure: bool = False) -> None:
        self.text = text
        self.taint = taint
        self.unsure = unsure
        self.file = ""


EMPTY = Text("")


class Variables:
    """The known variables of a shell; `sourced`: the mark of a value whose name is not known."""

    sourced = NOTHING

    def __init__(self, values: dict[str, Text], arrays: dict[str, list[str]] | None = None) -> None:
        self.values = values
        self.arrays = arrays or {}

    def copy(self) -> Variables:
        """Return a copy, for a subshell."""
        copied = Variables(dict(self.values), dict(self.arrays))
        copied.sourced = self.sourced
        return copied


def joined(texts: list[Text]) -> Text:
    """Return several texts as one; unknown parts become `UNKNOWN`."""
    taint = NOTHING
    for each in texts:
        taint |= each.taint
    if any(each.text is None for each in texts):
        known = [each.text if each.text is not None else UNKNOWN for each in texts]
        return Text("".join(known) if any(each.text for each in texts) else None, taint)
    return Text("".join(each.text or "" for each in texts), taint)


def decode_ansi(text: str) -> str:
    r"""Return the text that `$'…'` stands for: `\x72`, `\n` and the like are decoded."""

    def one(match: re.Match[str]) -> str:
        code = match[1]
        try:
            if code[0] in "xuU" and len(code) > 1:
                return chr(int(code[1:], 16))
            if code[0] in "01234567":
                return chr(int(code, 8) & 0xFF)
        except (ValueError, OverflowError):
            return UNKNOWN
        if code[0] == "c":
            return ""
        return _ESCAPES.get(code, code)

    return _ANSI.sub(one, text)
