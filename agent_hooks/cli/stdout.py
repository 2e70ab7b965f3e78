"""Stdout, kept for a command's answer.  Above: the other modules of cli.  Below: harmless."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Self

from agent_hooks.errors import os_reason
from agent_hooks.ui.harmless import harmless


class ReservedStdout:
    """The real stdout, kept for the answer: `with ReservedStdout() as stdout: stdout.write(…)`.

    What hooks and the programs they start print goes to stderr meanwhile.  When the reader of stdout is gone, what is
    written is dropped; `broken` tells of any other failure, a full disk for example.
    """

    def __enter__(self) -> Self:
        self.broken: str | None = None
        if sys.stdout is not None:  # closed by whoever started us
            sys.stdout.flush()
        self._real = os.dup(1)
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
        self.is_terminal = self._file.isatty()
        os.dup2(2, 1)
        return self

    def __exit__(self, *_: object) -> None:
        if sys.stdout is not None:
            sys.stdout.flush()
        os.dup2(self._real, 1)
        os.close(self._real)
        with suppress(OSError):  # `write` has told it
            self._file.close()

    def duplicate(self) -> int:
        """Return a descriptor of the real stdout, for the caller to use and close."""
        return os.dup(self._real)

    def write(self, text: str) -> None:
        """Write and flush."""
        if self.is_terminal:
            text = harmless(text)
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as exc:
            if not isinstance(exc, BrokenPipeError):
                self.broken = os_reason(exc)
            with suppress(OSError):  # or it is tried once more, when the object goes
                self._file.close()
            self._file = open(os.devnull, "w")  # noqa: SIM115  # stands for stdout until the process ends
