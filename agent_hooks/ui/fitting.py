"""Text that fits into the columns of a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from agent_hooks.ui.charset import shown_in

Line = tuple[str, str]
"""A style, and a text that fits into the columns of the terminal."""
# Terminals disagree about the width of spacing marks, enclosed numbers and the two fillers of Hangul.
_DOUBTFUL = {"Mc", "No"}
_FILLERS = "\u3164\uffa0"


def fragments(lines: Iterable[Line]) -> StyleAndTextTuples:
    """Return lines in prompt_toolkit's form."""
    found: StyleAndTextTuples = []
    for style, line in lines:
        text = shown_in(line)
        found += [("", "\n"), (style, text)] if found else [(style, text)]
    return found


def width_of(text: str) -> int:
    """Return the most columns that a terminal takes for a text of one line."""
    return sum(map(_columns, text))


def cut(text: str, columns: int) -> str:
    """Return a line of at most `columns`, with an ellipsis when it is cut, after a whole word if its end is near."""
    if width_of(text) <= columns:
        return text
    if columns <= 0:
        return ""
    kept = text[: _fitting(text, columns - 1)]
    space = kept.rfind(" ") if text[len(kept)] != " " else len(kept)
    return f"{kept[:space] if space > columns // 2 else kept}…"


def wrap(text: str, columns: int) -> list[str]:
    """Return the lines of a text, each of at most `columns`, broken at spaces if there are any."""
    return [part for line in text.split("\n") for part in _wrapped(line, max(columns, 1))]


def _wrapped(line: str, columns: int) -> Iterator[str]:
    """Yield the parts of one line, in one pass."""
    start = 0
    while True:
        # No character takes more than two columns or fewer than none, so most ends are found without a look at the rest.
        end = start + _fitting(line[start : start + 4 * columns + 4], columns)
        if end >= len(line):
            yield line[start:]
            return
        end = max(end, start + 1)
        space = line.rfind(" ", start + 1, end + 1)
        yield line[start : space if space > 0 else end]
        start = space + 1 if space > 0 else end


def _fitting(text: str, columns: int) -> int:
    """Return how many characters from the beginning of a text fit into the columns."""
    width = 0
    for index, char in enumerate(text):
        width += _columns(char)
        if width > columns:
            return index
    return len(text)


def _columns(char: str) -> int:
    """Return the most columns that a terminal takes, so that no row ends behind the edge."""
    if not char.isascii() and (char in _FILLERS or unicodedata.category(char) in _DOUBTFUL):
        return 2
    return get_cwidth(char)
