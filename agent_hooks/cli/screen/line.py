"""The prompt line: its history, and the line that is being typed, broken between words.

prompt_toolkit breaks a long line at the last column, in the middle of a word.  `BetweenWords` changes the shown line:
a word that would be broken is moved to the next row by spaces before it, and a space that would begin a row is left out.
A word that is longer than a row is broken, because nothing else shows it.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.history import FileHistory
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.utils import get_cwidth

from agent_hooks.errors import count, os_reason

LONGEST = 10_000
"""The most characters of a line whose words are looked at: each key draws it anew."""
Shift = tuple[int, int]
"""A place in the text, and the number of spaces that are put there; -1 is a space that is left out."""


class BetweenWords(Processor):
    """Shows a line in rows that break between words; `indent`: the columns of the prefix of each row."""

    def __init__(self, indent: int) -> None:
        self._indent = indent

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the fragments with the spaces, and the places of the cursor in them."""
        fragments = transformation_input.fragments
        text = fragment_list_to_text(fragments)
        moved = shifts(text, transformation_input.width - self._indent)
        if not moved:
            return Transformation(fragments)
        places = [place for place, _ in moved]
        sums = [0]
        for _, by in moved:
            sums.append(sums[-1] + by)

        def shown(at: int) -> int:
            # The cursor on a word stands behind the spaces before it, and on a space that is left out at the next row.
            count = bisect_right(places, at)
            hidden = count and moved[count - 1] == (at, -1)
            return at + sums[count] + (1 if hidden else 0)

        def typed(at: int) -> int:
            return bisect_right(range(len(text) + 1), at, key=shown) - 1

        return Transformation(_moved(fragments, dict(moved)), shown, lambda at: max(typed(at), 0))


def _moved(fragments: StyleAndTextTuples, moved: dict[int, int]) -> StyleAndTextTuples:
    found: StyleAndTextTuples = []
    for place, fragment in enumerate(explode_text_fragments(fragments)):
        by = moved.get(place, 0)
        if by > 0:
            found.append(("", " " * by))
        if by >= 0:
            found.append(fragment)
    return found


@lru_cache(maxsize=32)
def shifts(text: str, columns: int) -> tuple[Shift, ...]:
    """Return the places where spaces are put or left out, so that no row of so many columns ends within a word."""
    if len(text) > LONGEST or columns < 1:
        return ()
    found: list[Shift] = []
    column = place = 0
    while place < len(text):
        end = place + 1
        if text[place] == " ":
            if column >= columns:
                found.append((place, -1))
                column = 0
            else:
                column += 1
            place = end
            continue
        while end < len(text) and text[end] != " ":
            end += 1
        widths = [_width(char) for char in text[place:end]]
        if column and columns - column < sum(widths) <= columns:
            if column < columns:
                found.append((place, columns - column))
            column = 0
        for width in widths:
            column = width if column + width > columns else column + width
        place = end
    return tuple(found)


def _width(char: str) -> int:
    """Return the columns of a character as prompt_toolkit shows it: a control character is `^A`."""
    return get_cwidth(Char.display_mappings.get(char, char))


MOST_LINES = 10
"""A paste of more lines is shown as a mark."""
MOST_CHARACTERS = 2_000
"""And so is one of more characters."""
_MARK = re.compile(r"\[pasted text #(\d+): [^\]\n]*\]")


class Pastes:
    """The long texts that were pasted, by the number in their mark."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def shown(self, text: str) -> str:
        """Return a pasted text as it is shown in the line: short ones as they are, a mark for any other."""
        lines = len(text.splitlines())
        if lines <= MOST_LINES and len(text) <= MOST_CHARACTERS:
            return text
        self._texts.append(text)
        size = count(lines, "line") if lines > 1 else f"{len(text):,} characters"
        return f"[pasted text #{len(self._texts)}: {size}]"

    @staticmethod
    def mark_before(text: str) -> int:
        """Return the length of the mark at the end of a text, 0 without one."""
        match = re.search(rf"{_MARK.pattern}\Z", text)
        return len(match[0]) if match else 0

    def whole(self, line: str) -> str:
        """Return a line with the texts in the place of their marks."""

        def text(mark: re.Match[str]) -> str:
            number = int(mark[1])
            return self._texts[number - 1] if 0 < number <= len(self._texts) else mark[0]

        return _MARK.sub(text, line)


class PromptHistory(FileHistory):
    """The lines that the person typed, in a file that only they can read; in memory if that file cannot be used.

    A long text is a mark in the line, as it was when it was pasted, and is whole in the file.
    """

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        super().__init__(path)
        self.pastes = Pastes()
        self._path = path
        self._warn: Callable[[str], None] | None = warn

    def load_history_strings(self) -> Iterable[str]:
        try:
            return [self.pastes.shown(text) for text in super().load_history_strings()]
        except OSError as exc:
            self._failed(exc)
            return []

    def store_string(self, string: str) -> None:
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            super().store_string(self.pastes.whole(string))
        except OSError as exc:
            self._failed(exc)

    def _failed(self, exc: OSError) -> None:
        """Warn once."""
        if self._warn is not None:
            self._warn(f"{self._path}: your lines are not remembered: {os_reason(exc)}")
            self._warn = None
