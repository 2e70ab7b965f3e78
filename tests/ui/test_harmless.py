"""Control characters at a terminal: shown, or in the case of colours dropped or kept; none of them takes effect."""

from __future__ import annotations

import pytest

from agent_hooks.ui.harmless import coloured, harmless, overwritten, uncoloured

HOSTILE = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil\x1b\\link",
    "\x1b[?1049h",
    "\x1b[6n",
    "\x9b31m",
    "\u202e",
    "\x1bc",
    "\x1b[31",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_sequence_but_a_colour_is_shown_and_does_nothing(text: str) -> None:
    """Whether colours are shown, dropped or kept, no other control character is left."""
    for shown in (harmless(text), uncoloured(text), coloured(text)):
        assert not set(shown) & set("\x1b\x07\x9b\u202e"), shown
        assert "\\" in shown


def test_colours_are_shown_to_a_judge_dropped_for_a_reader_and_kept_where_they_help() -> None:
    """A person who approves a command sees its escapes; a person who reads an output does not."""
    text = "\x1b[1;31mred\x1b[0m"
    assert harmless(text) == r"\x1b[1;31mred\x1b[0m"
    assert uncoloured(text) == "red"
    assert coloured(text) == text


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("\x1b[8mhidden", "hidden"),
        ("\x1b[30;40mblack on black", "\x1b[30mblack on black"),
        ("\x1b[48;2;0;0;0;32mx", "\x1b[32mx"),
        ("\x1b[38;5;196mx", "\x1b[38;5;196mx"),
        ("\x1b[38;2;1;2;3;8mx", "\x1b[38;2;1;2;3mx"),
        ("\x1b[38mx", "x"),
        ("\x1b[38;5mx", "x"),
        ("\x1b[mx", "\x1b[0mx"),
        (f"\x1b[{'9' * 5000}mx", "x"),
    ],
)
def test_letters_keep_their_colour_but_cannot_be_made_invisible(given: str, kept: str) -> None:
    """Backgrounds, concealed and blinking letters are dropped."""
    assert coloured(given) == kept


def test_a_line_of_a_progress_bar_shows_its_last_state() -> None:
    """The carriage return is the one control character that every progress bar prints."""
    assert overwritten("10 %\r50 %\r100 %\r") == "100 %"
    assert overwritten("plain") == "plain"
