"""The history of the prompt line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from prompt_toolkit.history import FileHistory

from agent_hooks.cli.screen.pastes import Pastes
from agent_hooks.errors import os_reason


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
