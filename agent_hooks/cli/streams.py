"""The standard streams: stdout for the answer of a command, stderr for messages to a person."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Self

from agent_hooks.errors import os_reason
from agent_hooks.ui.harmless import harmless


def complain(text: str) -> None:
    """Print a message on stderr without control characters; do nothing when stderr is closed or its reader has gone."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"agent-hooks: {harmless(text)}\n")
            sys.stderr.flush()


def on_a_terminal() -> bool:
    """Tell whether stdin and stdout are both a terminal, so that a person can be asked."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


class ReservedStdout:
    """The real stdout, kept for the answer: `with ReservedStdout() as stdout: stdout.write(…)`.

    Everything else that this process and its children print on stdout goes to stderr meanwhile.  When the reader of
    stdout has gone, the answer is dropped; after any other failure, a full disk for example, `broken` is the reason.
    """

    def __enter__(self) -> Self:
        self.broken: str | None = None
        # The parent process may have closed it.
        if sys.stdout is not None:
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
        # `write` has recorded the failure in `broken`.
        with suppress(OSError):
            self._file.close()

    def duplicate(self) -> int:
        """Return a new descriptor of the real stdout; the caller closes it."""
        return os.dup(self._real)

    def write(self, text: str) -> None:
        """Write to the real stdout and flush; a terminal gets the text without control characters."""
        if self.is_terminal:
            text = harmless(text)
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as exc:
            if not isinstance(exc, BrokenPipeError):
                self.broken = os_reason(exc)
            # An open file would try to write its buffer once more when it is collected.
            with suppress(OSError):
                self._file.close()
            self._file = open(os.devnull, "w")  # noqa: SIM115  # the new stdout until the process ends
