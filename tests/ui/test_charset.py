"""Terminals whose locale has no UTF-8."""

from __future__ import annotations

import os
import pty
from contextlib import suppress

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.utils import get_cwidth

from agent_hooks.ui import dialogs
from agent_hooks.ui.charset import fallback, shown_in, shows_utf8
from agent_hooks.ui.terminal import OwnScreen, TerminalUI
from ui.test_terminal_ui import press


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Forget the locale of the test before."""
    shows_utf8.cache_clear()


@pytest.mark.parametrize(
    ("variables", "utf8"),
    [
        ({}, True),
        ({"LANG": "C"}, False),
        ({"LANG": "POSIX"}, False),
        ({"LANG": "C.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LANG": "de_DE.ISO-8859-1@euro"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "de_DE.ISO-8859-1", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "en_GB"}, True),
    ],
)
def test_the_locale_tells_the_characters(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], utf8: bool
) -> None:
    """`LC_ALL` counts before `LC_CTYPE`, and that before `LANG`; without any of them a terminal has UTF-8."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert shows_utf8() is utf8
    assert shown_in("•") == ("•" if utf8 else "*")


def test_the_utf8_that_python_sets_for_itself_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the locale C, Python sets `LC_CTYPE`; this process was not started with that value."""
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("LC_CTYPE", "C.UTF-9")
    assert shows_utf8() is False


def test_a_fallback_is_as_wide_as_its_character() -> None:
    """So a line that fits does so with the fallbacks too; letters lose their accents."""
    text = "• é → ñ … 日本 │ שלום 👍 ─ e\u0301"
    shown = fallback(text)
    assert shown == "* e = n ~ ???? | ???? ?? - e"
    assert get_cwidth(shown) == get_cwidth(text)


@pytest.mark.parametrize(("locale", "ascii_only"), [("C", True), ("C.UTF-8", False)])
async def test_a_dialog_with_the_terminal_to_itself_is_in_ascii_too(
    monkeypatch: pytest.MonkeyPatch, locale: str, ascii_only: bool
) -> None:
    """Its texts, the hint, the letters that are typed, and the line that stays; the answer has the letters themselves."""
    monkeypatch.setenv("LC_ALL", locale)
    monkeypatch.setattr(dialogs, "MOMENT", 0)
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stderr, create_pipe_input() as keyboard:
        monkeypatch.setattr("sys.stderr", stderr)
        press(keyboard, "Grüße|\r")
        answer = await TerminalUI(OwnScreen(keyboard)).input("Wie heißt „du“?", "→ Müller")
        monkeypatch.undo()
        stderr.write("the end")
    seen = read_until_closed(ours)
    assert answer == "Grüße"
    assert seen.isascii() is ascii_only
    assert (b"Gru?e" if ascii_only else "Grüße".encode()) in seen


def read_until_closed(terminal: int) -> bytes:
    """Return all that a terminal was sent, whose other end is closed."""
    seen = b""
    with os.fdopen(terminal, "rb", buffering=0) as file, suppress(OSError):
        while part := file.read(10_000):
            seen += part
    return seen
