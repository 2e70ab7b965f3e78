"""The measure of plain English counts the sentences it should, and names the right place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CHECK = ROOT / "checks" / "prose.py"
PAGE = """\
# A page

Hooks load in order. This row shows
what is loaded.

```text
This is who prints what.
```

1. The loop calls handlers.
2. Nobody is asked.

| word | meaning |
|---|---|
| UI | a terminal, or nobody |

See [the limits](#what-no-hook-sees).
"""


def run(*args: str | Path) -> tuple[int, list[str]]:
    """Run the check and return its exit code and the lines it printed."""
    done = subprocess.run(
        [sys.executable, str(CHECK), *map(str, args)], capture_output=True, text=True, timeout=60, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def listed(path: Path, source: str) -> list[str]:
    """Return each counted sentence of a file, as `line: kind: text`."""
    path.write_text(source)
    _, lines = run("--list", path)
    return [line.removeprefix(f"{path}:") for line in lines if line.startswith(str(path))]


@pytest.mark.parametrize(
    "sentence",
    [
        "It is told what happened.",
        "This runs for whoever asks.",
        "Whatever comes is kept.",
        "With nobody there it blocks.",
        "Anyone who asks gets an answer.",
        "See `code` for what it does.",
    ],
)
def test_a_sentence_without_a_subject_is_counted(sentence: str, tmp_path: Path) -> None:
    """The sentence has a free pronoun in the place of a noun."""
    assert listed(tmp_path / "page.md", sentence) == [f"1: pages: {sentence}"]


@pytest.mark.parametrize(
    "sentence",
    [
        "The loop calls handlers.",
        "What does the loop call?",
        '"What does the loop call?"',
        "Run `who am i` and ``what else``.",
        'The word "who" needs a noun.',
        "The person who installed it decides.",
        "Read [the page](who-is-who.md#what-it-does) first.",
        "The whole somewhat",
    ],
)
def test_a_sentence_with_a_subject_is_not_counted(sentence: str, tmp_path: Path) -> None:
    """Questions, code, mentioned words, link targets and persons with a noun are fine."""
    assert listed(tmp_path / "page.md", sentence) == []


def test_a_page_is_read_without_its_code_and_each_sentence_has_its_line(tmp_path: Path) -> None:
    """List items and table rows are texts of their own."""
    assert listed(tmp_path / "page.md", PAGE) == [
        "3: pages: This row shows what is loaded.",
        "11: pages: Nobody is asked.",
        "15: pages: a terminal, or nobody",
    ]


def test_docstrings_are_read_with_those_of_attributes(tmp_path: Path) -> None:
    """The place is the sentence's line, not the docstring's."""
    source = '"""A module.\n\nIt does what it can.\n"""\n\nLIMIT = 1\n"""A number for who asks."""\n'
    assert listed(tmp_path / "code.py", source) == [
        "3: docstrings: It does what it can.",
        "7: docstrings: A number for who asks.",
    ]


def test_comments_on_adjacent_lines_are_one_text(tmp_path: Path) -> None:
    """A sentence may go on on the next line; code between two comments ends it."""
    source = "# The loop knows\n# what it calls. Fine.\nx = 1\n# Plain.\n\n# Who\n\n# asks\ny = 1  # for what\n"
    assert listed(tmp_path / "code.py", source) == [
        "1: comments: The loop knows what it calls.",
        "9: comments: for what",
    ]


def test_a_directive_is_no_part_of_a_trailing_comment(tmp_path: Path) -> None:
    """The reason behind `noqa` may be 60 characters long."""
    reason = "a" * 29 + " " + "b" * 30
    source = f"x = 1  # noqa: S101, S102  # {reason}\ny = 1  # type: ignore[misc]  # {reason}!\n"
    assert listed(tmp_path / "code.py", source) == [f"2: trailing: {reason}!"]


def test_printed_texts_are_read_with_the_values_of_f_strings_as_code(tmp_path: Path) -> None:
    """A text that is put together from parts is one sentence; a line break in it is no new line of source."""
    source = (
        'def fail(name):\n    raise ValueError(\n        f"{name} does not know "\n        "what to do; see the page"\n'
        '    )\n\n\nprint("One line.\\n\\nHere is what follows.")\n'
    )
    assert listed(tmp_path / "code.py", source) == [
        "3: printed texts: `x` does not know what to do;",
        "8: printed texts: Here is what follows.",
    ]


def test_texts_of_tests_are_data(tmp_path: Path) -> None:
    """Only docstrings and comments of a test are prose."""
    folder = ROOT / "tests" / "checks"
    _, lines = run("--list", folder / "test_prose.py")
    assert [line for line in lines if line.startswith("tests/")] == []


def test_the_check_fails_above_one_in_fifty_or_with_a_long_trailing_comment(tmp_path: Path) -> None:
    """At the limit it passes, and prints a row for each kind."""
    page, code = tmp_path / "page.md", tmp_path / "code.py"
    page.write_text("Here is what happens. " + "The loop calls handlers. " * 49)
    exit_code, lines = run(page)
    assert exit_code == 0
    assert "pages             1 of     50 sentences hide their subject: 1 in 50 (at most 1 in 50)" in lines
    page.write_text("Here is what happens. " + "The loop calls handlers. " * 48)
    assert run(page)[0] == 1
    code.write_text(f"x = 1  # {'word ' * 13}\n")
    assert run(code)[0] == 1
