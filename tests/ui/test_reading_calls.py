"""What is on screen of a call that the user is asked about, at each size of the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.ui import Question
from agent_hooks.ui.base import call_text
from agent_hooks.ui.dialogs import LineDialog, ListDialog, Option, QuestionDialog
from agent_hooks.ui.reading import condensed

COMMANDS = {
    "blanks": "git status" + " " * 1600 + "; touch PWNED",
    "empty lines": "git status" + "\n" * 40 + "touch PWNED",
    "comment": "git status # " + "nothing to see here, move along please. " * 40 + "\ntouch PWNED",
    "middle": "git status\n" + "# harmless\n" * 200 + "touch MIDDLE\n" + "# harmless\n" * 200 + "touch PWNED",
}


def question_about(command: str) -> QuestionDialog:
    """Return the dialog about a call of bash."""
    return QuestionDialog(
        Question(
            title="Run this command?",
            call="bash git status",
            text=call_text("bash", {"command": command}),
            risk="runs git status and touch",
            reasons=("asked by ~/.agent/hooks/ask.py",),
        )
    )


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_both_ends_of_a_call_are_on_the_first_page(command: str, size: tuple[int, int]) -> None:
    """Title, risk and reasons are above it."""
    shown = [text for _, text in question_about(command).lines(*size)]
    begin = next(at for at, text in enumerate(shown) if "bash git" in text)
    end = next(at for at, text in enumerate(shown) if "touch PWNED" in text)
    assert shown[:3] == ["Run this command?", "risk: runs git status and touch", "asked by ~/.agent/hooks/ask.py"]
    assert begin == 3 <= end


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("size", [(80, 24), (40, 12), (20, 8), (20, 4)])
def test_an_allowing_answer_counts_after_the_last_page(command: str, size: tuple[int, int]) -> None:
    """Each row is on screen before.  No can be chosen at any time."""
    dialog = question_about(command)
    assert [dialog._counts(index) for index in range(3)] == [True, False, True]
    rows = {text for _, text in dialog._wrapped(size[0])[0]}
    seen = {text for _, text in dialog.lines(*size)}
    pages = 1
    while not dialog._counts(1):
        assert pages < 700
        assert size[1] < 8 or any("more line" in text for _, text in dialog.lines(*size))
        assert size[1] < 8 or any(text.startswith("read to the end") for _, text in dialog.lines(*size))
        assert [dialog._counts(index) for index in range(3)] == [True, False, True]
        dialog._page(1)
        # Another key before the page is drawn does not pass it over.
        dialog._page(1)
        seen |= {text for _, text in dialog.lines(*size)}
        pages += 1
    assert rows <= seen
    assert [dialog._counts(index) for index in range(3)] == [True, True, True]


@given(
    st.text(st.sampled_from(" \nab─"), max_size=120),
    st.integers(6, 60),
    st.integers(3, 30),
    st.integers(3, 30),
    st.integers(0, 9),
)
def test_no_row_is_passed_over_at_any_size(text: str, columns: int, rows: int, later: int, page: int) -> None:
    """Nor when the size changes between two pages."""
    dialog = ListDialog("Run it?", [Option("No"), Option("Yes")], message=text, denying=(0,))
    seen: set[str] = set()
    for at in range(400):
        seen |= {row for _, row in dialog.lines(columns, rows if at < page else later)}
        if dialog._counts(1):
            break
        dialog._page(1)
    assert dialog._counts(1)
    assert {row for _, row in dialog._wrapped(columns)[0]} <= seen


def test_a_narrower_terminal_begins_at_the_first_page() -> None:
    """Other rows would be passed over."""
    dialog = question_about(COMMANDS["comment"])
    dialog.lines(80, 12)
    dialog._page(1)
    assert "Run this command?" not in [text for _, text in dialog.lines(80, 12)]
    assert "Run this command?" in [text for _, text in dialog.lines(40, 12)]
    while not dialog._counts(1):
        dialog._page(1)
        dialog.lines(40, 12)
    dialog.lines(40, 12)
    assert dialog._counts(1)
    dialog.lines(30, 12)
    assert not dialog._counts(1)


def test_rows_that_the_terminal_does_not_have_show_nothing_of_a_call() -> None:
    """Another program can claim them.  At the true size, the call is read from its beginning."""
    dialog = question_about(COMMANDS["middle"])
    first = dialog.lines(80, 24)
    dialog.lines(80, 500)
    assert dialog._counts(1)
    assert dialog.lines(80, 24) == first
    assert not dialog._counts(1)


def test_many_blanks_and_empty_lines_are_a_count() -> None:
    """A few of them stay, and letters that look like a blank are blanks."""
    lines = ["a" + " " * 32 + "b", "", " ", "", "\u3164" * 3, "c" + " " * 31 + "d", "", "", "", "e" + "\u2800" * 50]
    assert [*condensed(lines)] == [
        "a …[32 blanks]… b",
        "…[4 empty lines]…",
        "c" + " " * 31 + "d",
        "",
        "",
        "",
        "e …[50 blanks]… ",
    ]
    assert [*condensed(["+a", *["+"] * 5, *["-  "] * 4, " b"], signs=1)] == [
        "+a",
        "+…[5 empty lines]…",
        "-…[4 empty lines]…",
        " b",
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("bash", {"command": "ls"}, "bash ls"),
        ("bash", {"command": "a\nb", "timeout": 5}, "bash {'timeout': 5}\na\nb"),
        ("bash", {"command": ["ls"]}, "bash {'command': ['ls']}"),
        ("write", {"path": "a", "content": "b\nc"}, "write a\ncontent:\n  b\n  c"),
        ("other", {"code": "a\nb", "k\n": "c\nd", "n": 1}, "other {'n': 1}\ncode:\n  a\n  b\n'k\\n':\n  c\n  d"),
        ("other", {}, "other {}"),
    ],
)
def test_the_text_of_a_call_leaves_nothing_out(tool: str, arguments: dict[str, object], text: str) -> None:
    """Texts of several lines keep their lines."""
    assert call_text(tool, arguments) == text


def test_a_long_option_of_a_hook_must_be_read_before_it_is_chosen() -> None:
    """Its end may be another command than its beginning."""
    options = [Option("short"), Option("git status" + " word" * 200)]
    for judged in (True, False):
        dialog = ListDialog("Which?", options, judged=judged)
        dialog.lines(40, 12)
        assert [dialog._counts(index) for index in range(2)] == [True, not judged]
    dialog = ListDialog("Which?", options, judged=True)
    dialog._select(1)
    for _ in range(40):
        dialog.lines(40, 12)
        dialog._page(1)
    assert dialog._counts(1)


def test_a_line_says_that_its_question_has_an_end() -> None:
    """Enter does not count before."""
    dialog = LineDialog("Type yes: " + "word " * 200, "", above=["asked by a.py"], call="bash ls")
    dialog._reading.part(40, 9)
    assert "read to the end first" in dialog._footer(60, "Enter")[1]
