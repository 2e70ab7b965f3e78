"""The standard streams: stdout for the answer of a command, stderr for messages to a person.

This module, and `Paper` of `screen/paper.py` for tables and colours, are the only code of the commands that prints: no
text of a hook, a file or a model controls the terminal.
"""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Self, TextIO

from agent_hooks.errors import os_reason
from agent_hooks.ui.charset import shown_in
from agent_hooks.ui.harmless import harmless

# The control characters that JSON allows within strings; `harmless` escapes the same ones.
_CONTROL = r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"

_quiet = False


def _nothing() -> None:
    """Do nothing."""


before_writing: Callable[[], object] = _nothing
"""Called before each message; `working` removes its spinner then."""


def echo(text: object = "", *, err: bool = False, end: str = "\n", words: bool = False) -> None:
    """Print a text on stdout, or on stderr, without control characters.

    `words`: these are sentences, which a terminal gets broken between words, as on stderr.  When the reader has gone, the
    text is dropped, and the command goes on.
    """
    shown, stream = harmless(str(text)), sys.stderr if err else sys.stdout
    _write(stream, (_fitted(shown, stream) if err or words else shown) + end)


def _fitted(text: str, stream: TextIO) -> str:
    """Return a message with its lines broken between words, at the width of the terminal that the stream leads to."""
    try:
        if not stream.isatty():
            return text
        columns = os.get_terminal_size(stream.fileno()).columns
    # The parent process has closed the stream, or a hook has replaced it.
    except (AttributeError, OSError, ValueError):
        return text
    return "\n".join(piece for line in text.split("\n") for piece in at_words(line, columns or len(text)))


def at_words(line: str, columns: int, indent: int = 2) -> list[str]:
    """Return a line as lines of so many columns, broken between words only; all but the first have an indent."""
    if len(line) <= columns:
        return [line]
    # Imported here, because most messages are short or go to a program.
    import textwrap

    wrapper = textwrap.TextWrapper(
        columns,
        subsequent_indent=" " * min(indent, columns // 2),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return wrapper.wrap(line) or [""]


def be_quiet() -> None:
    """Let `tell` print nothing from now on: `-q` was given."""
    global _quiet
    _quiet = True


def is_quiet() -> bool:
    """Tell whether `-q` was given: progress and confirmations are left out then."""
    return _quiet


def tell(text: object = "", *, err: bool = False) -> None:
    """Print what a command has done, a confirmation for a person, unless `-q` was given."""
    if not _quiet:
        echo(text, err=err, words=True)


def echo_json(text: str) -> None:
    """Print JSON on stdout; the control characters that JSON allows become its escapes."""
    # They occur in strings only.
    _write(sys.stdout, re.sub(_CONTROL, lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


def echo_data(text: str) -> None:
    """Print a text on stdout that another program may read: only a terminal gets it without control characters."""
    _write(sys.stdout, harmless(text) if sys.stdout is not None and sys.stdout.isatty() else text)


def echo_raw(text: str) -> None:
    """Print a text on stderr whose parts were made harmless before, with our own colours in it."""
    _write(sys.stderr, text)


def complain(text: str) -> None:
    """Print a message on stderr without control characters; do nothing when stderr is closed or its reader has gone."""
    echo(f"agent-hooks: {text}", err=True)


def _write(stream: TextIO | None, text: str) -> None:
    """Write a harmless text to a standard stream and flush it; `None` is a stream that the parent process has closed."""
    if stream is None:
        return
    before_writing()
    try:
        if not text.isascii() and stream.isatty():
            text = shown_in(text)
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        silence_gone()
    # The disk is full, or a hook has closed or replaced the stream, and then anything may be raised.  A message that
    # cannot be shown is lost; an answer that cannot be written is a failure, which the caller gets.
    except Exception:
        if stream is not sys.stderr:
            raise


def flushed(stream: TextIO | None) -> bool:
    """Flush a standard stream, and return whether nothing is left in it."""
    try:
        if stream is not None:
            stream.flush()
    # The same causes; the caller gets the failure as the result.
    except Exception:
        return False
    return True


def silence_gone() -> None:
    """Lead stdout and stderr to /dev/null if their reader has gone, so that nothing fails that writes there later."""
    for number in (1, 2):
        poll = select.poll()
        poll.register(number, 0)
        if any(state & select.POLLERR for _, state in poll.poll(0)):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)


def watch_readers() -> None:
    """Silence stdout and stderr as soon as their reader goes, also for hooks and tools that print there."""

    def watch() -> None:
        poll = select.poll()
        for number in (1, 2):
            poll.register(number, 0)
        if any(state & select.POLLERR for _, state in poll.poll()):
            silence_gone()

    Thread(target=watch, name="agent_hooks readers", daemon=True).start()


def on_a_terminal() -> bool:
    """Tell whether stdin and stdout are both a terminal, so that a person can talk with the agent."""
    return _are_terminals(sys.stdin, sys.stdout)


def can_show_question() -> bool:
    """Tell whether stdin and stderr are both a terminal, so that a person can be asked; stdout may lead to a file."""
    return _are_terminals(sys.stdin, sys.stderr)


def _are_terminals(*streams: TextIO | None) -> bool:
    return all(stream is not None and stream.isatty() for stream in streams)


class ReservedStdout:
    """The real stdout, kept for the answer: `with ReservedStdout() as stdout: stdout.write(…)`.

    Everything else that this process and its children print on stdout goes to stderr meanwhile.  When the reader of
    stdout has gone, the answer is dropped; after any other failure, a full disk for example, `broken` is the reason.
    """

    def __enter__(self) -> Self:
        self.broken: str | None = None
        # The parent process may have closed it.
        flushed(sys.stdout)
        self._real = os.dup(1)
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
        self.is_terminal = self._file.isatty()
        self.same_as_stderr = os.path.samestat(os.fstat(self._real), os.fstat(2))
        os.dup2(2, 1)
        return self

    def __exit__(self, *_: object) -> None:
        silence_gone()
        flushed(sys.stdout)
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
        self.write_shown(shown_in(harmless(text)) if self.is_terminal else text)

    def write_shown(self, text: str) -> None:
        """Write a text to the real stdout whose parts were made harmless before, with our own colours in it."""
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
