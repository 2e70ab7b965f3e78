"""Text that fits into the columns of a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

Line = tuple[str, str]
"""A style, and a text that fits into the columns of the terminal."""


def fragments(lines: Iterable[Line]) -> StyleAndTextTuples:
    """Return lines in prompt_toolkit's form."""
    found: StyleAndTextTuples = []
    for style, text in lines:
        found += [("", "\n"), (style, text)] if found else [(style, text)]
    return found


def cut(text: str, columns: int) -> str:
    """Return a line of at most `columns`, with an ellipsis when it is cut."""
    if get_cwidth(text) <= columns:
        return text
    while text and get_cwidth(text) > columns - 1:
        text = text[: min(len(text) - 1, columns)]
    return f"{text}…" if columns > 0 else ""


def wrap(text: str, columns: int) -> list[str]:
    """Return the lines of a text, each of at most `columns`, broken at spaces if there are any."""
    lines: list[str] = []
    for line in text.split("\n"):
        while get_cwidth(line) > columns and len(line) > 1:
            end, width = 0, 0
            while end < len(line) and (width := width + get_cwidth(line[end])) <= columns:
                end += 1
            end = max(end, 1)
            space = line.rfind(" ", 1, end + 1)
            lines.append(line[: space if space > 0 else end])
            line = line[space + 1 if space > 0 else end :]
        lines.append(line)
    return lines
