"""Progress of a command that takes long."""

from __future__ import annotations

import io
import os
import pty
import select
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent_hooks.cli import streams
from agent_hooks.cli.screen import working as module
from agent_hooks.cli.screen.working import working
from support import PATIENCE


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Put a terminal in the place of stderr, and yield its other end."""
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        yield ours
    os.close(ours)


def read_until(terminal: int, text: str) -> str:
    """Return the output of a terminal up to a text."""
    shown = ""
    while text not in shown:
        assert select.select([terminal], [], [], PATIENCE)[0], f"waited for {text!r} after {shown!r}"
        shown += os.read(terminal, 1000).decode()
    return shown


def test_long_work_is_shown_until_something_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its time; the spinner goes away before the text."""
    monkeypatch.setattr(module, "AFTER", 0)
    with terminal(monkeypatch) as screen, working("digging"):
        read_until(screen, "digging")
        streams.echo("found", err=True)
        assert "digging" not in read_until(screen, "found").rpartition("\x1b[2K")[2]
    assert streams.before_writing is streams._nothing


def test_work_that_goes_on_after_a_message_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that prints a line now and then is seen to go on; the time counts from its beginning."""
    monkeypatch.setattr(module, "AFTER", 0)
    monkeypatch.setattr(module, "AGAIN", 0.01)
    with terminal(monkeypatch) as screen:
        with working("digging"):
            read_until(screen, "digging")
            streams.echo("found", err=True)
            assert "0:00:0" in read_until(screen, "found") + read_until(screen, "digging") + read_until(
                screen, "0:00:0"
            )
            streams.echo("found more", err=True)
            read_until(screen, "found more")
            read_until(screen, "digging")
        streams.echo("the end", err=True)
        assert "digging" not in read_until(screen, "the end").rpartition("\x1b[2K")[2]


def test_short_work_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is printed for a command that ends within a second."""
    with terminal(monkeypatch) as screen:
        with working("digging"):
            pass
        streams.echo("found", err=True)
        assert read_until(screen, "found").startswith("found")


def test_without_a_terminal_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reads stderr gets no spinner."""
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(module, "AFTER", 0)
    with working("digging"):
        streams.echo("found", err=True)
    assert stderr.getvalue() == "found\n"
