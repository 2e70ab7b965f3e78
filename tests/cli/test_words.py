"""The line that is being typed, in the rows of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout import BufferControl
from prompt_toolkit.layout.processors import Transformation, TransformationInput
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.utils import get_cwidth

from agent_hooks.cli.screen.line import LONGEST, BetweenWords, shifts


def transformed(text: str, columns: int) -> Transformation:
    """Return a line of a buffer as it is shown in rows of so many columns behind an indent of two."""
    with create_app_session(input=DummyInput(), output=DummyOutput()):
        control = BufferControl(Buffer())
    given = TransformationInput(control, Document(text), 0, lambda at: at, [("", text)], columns + 2, 5)
    return BetweenWords(indent=2).apply_transformation(given)


def rows(shown: str, columns: int) -> list[str]:
    """Return the rows that prompt_toolkit makes of a line: it breaks where the next character has no room."""
    found, width = [""], 0
    for char in shown:
        if width + get_cwidth(char) > columns:
            found.append("")
            width = 0
        found[-1] += char
        width += get_cwidth(char)
    return found


def shown_rows(text: str, columns: int) -> list[str]:
    """Return the rows of a typed line."""
    return rows(fragment_list_to_text(transformed(text, columns).fragments), columns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", ["short"]),
        ("one two three four", ["one two   ", "three four"]),
        # The space has no room in the first row, and would begin the second one.
        ("0123456789 next", ["0123456789", "next"]),
        ("0123456789  next", ["0123456789", " next"]),
        # A word that is longer than a row begins where it stands, and is broken.
        ("see 0123456789abcdef now", ["see 012345", "6789abcdef", "now"]),
        ("漢字漢 漢字漢", ["漢字漢    ", "漢字漢"]),
        ("ends with a space ", ["ends with ", "a space "]),
    ],
)
def test_a_typed_line_breaks_between_words(text: str, expected: list[str]) -> None:
    """Only a word that is longer than a row is broken."""
    assert [row.rstrip() for row in shown_rows(text, 10)] == [row.rstrip() for row in expected]


@given(st.text("ab 漢́\x01", max_size=60), st.integers(2, 12))
def test_every_character_is_shown_once_and_the_cursor_finds_it(text: str, columns: int) -> None:
    """The shown line has the typed characters in their order, spaces apart; no word that fits into a row is broken."""
    shown = transformed(text, columns)
    line = fragment_list_to_text(shown.fragments)
    assert line.replace(" ", "") == text.replace(" ", "")
    for at, char in enumerate(text):
        place = shown.source_to_display(at)
        assert char == " " or line[place] == char
        assert char == " " or shown.display_to_source(place) == at
    assert shown.source_to_display(len(text)) == len(line)
    if "\x01" not in text and "́" not in text:
        words = [word for row in rows(line, columns) for word in row.split()]
        assert [word for word in text.split() if get_cwidth(word) <= columns] == [
            word for word in words if word in text.split() and get_cwidth(word) <= columns
        ] or any(get_cwidth(word) > columns for word in text.split())


def test_a_very_long_line_and_a_terminal_without_columns_are_left_as_they_are() -> None:
    """Each key would look at all of it."""
    assert shifts("word " * (LONGEST // 5 + 1), 20) == ()
    assert shifts("word word", 0) == ()
    assert shifts("word word", -1) == ()
