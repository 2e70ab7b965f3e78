"""Text of a stranger at a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.cli.screen.marked import decoded, marked, one_line, wrapped

ANY = st.text(st.characters(codec=None, categories=None) | st.sampled_from("\u202e\u200b\x1b\r\t\n\u0301a 漢\udc80"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("def f(x):\n\treturn 'ä漢🙂'\n", "def f(x):\n\treturn 'ä漢🙂'\n"),
        ("\x1b[2J\r\x7f\x85", "<U+001B>[2J<U+000D><U+007F><U+0085>"),
        ("\u202e\u2066\u200f", "<U+202E><U+2066><U+200F>"),
        ("\u200b\ufeff\u00ad\u2060", "<U+200B><U+FEFF><U+00AD><U+2060>"),
        ("\u00a0\u3000\u2028\u3164\U000e0041\ufe0f", "<U+00A0><U+3000><U+2028><U+3164><U+E0041><U+FE0F>"),
        ("a\u0301\u0301\u0301\u0301", "a\u0301\u0301<U+0301><U+0301>"),
        (decoded(b"\xff\xc3"), "<FF><C3>"),
        ("\ud800", "<U+D800>"),
    ],
)
def test_hidden_characters_are_marked_by_their_number(text: str, shown: str) -> None:
    """Tabs, newlines and visible characters of any script stay."""
    assert marked(text) == shown


@given(ANY)
def test_no_text_harms_the_terminal(text: str) -> None:
    """No control, format, surrogate or unassigned character is left, and marking twice changes nothing."""
    shown = marked(text)
    assert {unicodedata.category(char) for char in shown if char not in "\t\n"}.isdisjoint(
        {"Cc", "Cf", "Cs", "Cn", "Co"}
    )
    assert marked(shown) == shown
    assert "\n" not in one_line(text)
    assert one_line(text).isprintable()


@given(ANY.map(lambda text: text.replace("\n", "")), st.integers(20, 60))
def test_wrapping_cuts_nothing_and_fits(text: str, columns: int) -> None:
    """The pieces together are the marked line; a tab becomes spaces."""
    pieces = list(wrapped(text, columns))
    assert all(len(piece.encode("ascii", "ignore")) <= columns for piece in pieces)
    if text.isascii() and "\t" not in text:
        assert "".join(pieces) == marked(text)


def test_a_mark_in_the_text_itself_has_no_colour() -> None:
    """So the person can tell one from the other."""
    assert marked("<U+202E>\u202e", colour=True) == "<U+202E>\x1b[7m<U+202E>\x1b[27m"
