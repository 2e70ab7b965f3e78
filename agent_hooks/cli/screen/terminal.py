"""The terminal, taken over by one application and given back."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import Input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output

from agent_hooks.ui.charset import shown_in

PIPE_SIZE = 65536  # bytes that a pipe holds
# Bytes of an unfinished line, before it is shown.
LONGEST_LINE = 10_000
# No bracketed paste, a cursor, no colours.
SANE = b"\x1b[?2004l\x1b[?25h\x1b[0m"


class OwnTerminal:
    """The terminal for one application alone: `with OwnTerminal() as terminal`.

    Other output on stdout or stderr, of hooks and the programs that they start, goes to `show` line by line.  A thread
    reads it, because a hook that blocks the event loop must not wait for its reader.  stdin is empty for everything
    but the application.  `gone` is called when the terminal can no longer be written to.
    """

    def __init__(self) -> None:
        self.show: Callable[[str], None] = lambda line: None
        self.gone: Callable[[], None] = lambda: None
        # The descriptors of the terminal.
        self._kept = [0, 1, 2]

    def __enter__(self) -> OwnTerminal:
        _flush()
        self._modes = termios.tcgetattr(0)
        self._kept = [os.dup(number) for number in (0, 1, 2)]
        self._reads, writes = os.pipe()
        self._ends, self._end = os.pipe()
        empty = os.open(os.devnull, os.O_RDONLY)
        for number, file in enumerate((empty, writes, writes)):
            os.dup2(file, number)
        os.close(empty)
        os.close(writes)
        self._reader = threading.Thread(target=self._read, name="agent_hooks output", daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        _flush()
        os.close(self._end)
        self._reader.join()
        self.give_back()
        kept, self._kept = self._kept, [0, 1, 2]
        for file in (*kept, self._reads, self._ends):
            os.close(file)

    def give_back(self) -> None:
        """Restore the modes of the terminal, and stdin, stdout and stderr; never fails."""
        with suppress(OSError, termios.error):  # the terminal is gone
            termios.tcsetattr(self._kept[0], termios.TCSADRAIN, self._modes)
            os.write(self.fileno(), SANE)
        for number, kept in enumerate(self._kept):
            os.dup2(kept, number)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Make the terminal stdin, stdout and stderr of this process in the block."""
        _flush()
        own = [os.dup(number) for number in (0, 1, 2)]
        try:
            for number, kept in enumerate(self._kept):
                os.dup2(kept, number)
            yield
        finally:
            _flush()
            for number, file in enumerate(own):
                os.dup2(file, number)
                os.close(file)

    def input(self) -> Input:
        """Return the keyboard, as prompt_toolkit reads it."""
        return Vt100Input(os.fdopen(self._kept[0], closefd=False))

    def output(self) -> Output:
        """Return the terminal, as prompt_toolkit writes to it."""
        return Vt100_Output(cast(TextIO, self), self.size, term=os.environ.get("TERM"), enable_cpr=False)

    # ---- the file that prompt_toolkit writes to

    encoding = "utf-8"

    def write(self, text: str) -> None:
        """Write; call `gone` instead of failing when the terminal is gone."""
        data = shown_in(text).encode(self.encoding, "replace")
        try:
            while data:
                data = data[os.write(self.fileno(), data) :]
        except OSError:
            self.gone()

    def flush(self) -> None:
        """Do nothing: `write` keeps no buffer."""

    def fileno(self) -> int:
        """Return the terminal's file descriptor."""
        return self._kept[1]

    def isatty(self) -> bool:
        """Return `True`."""
        return True

    def size(self) -> Size:
        """Return the current size of the terminal, 24 rows of 80 columns when it is gone."""
        try:
            columns, rows = os.get_terminal_size(self.fileno())
        except OSError:
            columns = rows = 0
        return Size(rows or 24, columns or 80)

    def _read(self) -> None:
        """Pass on each line; at the end, pass on the rest and stop, even if a program still holds the pipe open."""
        rest, ended = b"", False
        while not ended:
            ready, _, _ = select.select([self._reads, self._ends], [], [])
            ended = self._ends in ready
            chunk = os.read(self._reads, PIPE_SIZE) if self._reads in ready else b""
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LONGEST_LINE or (ended and rest):
                lines, rest = [*lines, rest], b""
            for line in lines:
                self.show(line.decode("utf-8", "replace"))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a hook has closed it
            stream.flush()
