"""Long pastes in the prompt line: a short mark stands for the text until the line is sent."""

from __future__ import annotations

import re

from agent_hooks.errors import count

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
