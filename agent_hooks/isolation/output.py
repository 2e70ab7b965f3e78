"""The output of a hook's process: line by line on stderr, with the hook's name, up to a limit."""

from __future__ import annotations

import sys
from contextlib import suppress
from time import monotonic

from agent_hooks.ui.harmless import harmless

# Bytes that are shown within a minute.
MOST = 64 * 1024
# Bytes of a line that are kept until its end; a longer one is shown in parts.
_LONGEST = 8 * 1024
_MINUTE = 60.0


class Output:
    """Shows the output of a hook; `label`: the hook's name."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._line = b""
        self._left = MOST
        self._since = monotonic()
        self._lost = 0

    def feed(self, data: bytes) -> None:
        """Show the lines that are complete with `data`, and keep the rest for the next call."""
        now = monotonic()
        if now - self._since >= _MINUTE:
            self._say_lost()
            self._since, self._left = now, MOST
        kept = data[: self._left]
        self._left -= len(kept)
        lost = len(data) - len(kept)
        self._lost += lost
        *lines, self._line = (self._line + kept).split(b"\n")
        for line in lines:
            self._show(line)
        if len(self._line) > _LONGEST:
            self._end_line()
        if lost == self._lost > 0:
            self._end_line()
            self._show(b"more output is left out for up to a minute: %d bytes were shown" % MOST)

    def end(self) -> None:
        """Show the last line, and how much was left out."""
        self._end_line()
        self._say_lost()

    def _end_line(self) -> None:
        if self._line:
            self._show(self._line)
            self._line = b""

    def _say_lost(self) -> None:
        if self._lost:
            self._show(b"%d bytes of output were left out" % self._lost)
            self._lost = 0

    def _show(self, line: bytes) -> None:
        text = harmless(f"[{self._label}] " + line.decode("utf-8", "replace").rstrip("\r"))
        if sys.stderr is not None:
            # A reader that has gone away, or a full disk, must not end the hook.
            with suppress(OSError, ValueError):
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()
