"""The history of the prompt line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from prompt_toolkit.history import FileHistory

from agent_hooks.errors import count, os_reason

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
