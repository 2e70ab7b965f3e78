"""Each promise of docs/security.md names tests that exist and run."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
HEADING = "| promise | tests |"
NEVER = {"skip", "xfail"}


def promises(text: str) -> list[str]:
    """Return the rows and sentences of the section on promises, without headings and the lines of empty tables."""
    section = text.partition("\n## The promises\n")[2].partition("\n## ")[0]
    plain = ("", HEADING, "|---|---|")
    return [line for line in section.splitlines() if line not in plain and not line.startswith("### ")]


def without_a_test(text: str) -> list[str]:
    """Return the promises that name no test."""
    return [line for line in promises(text) if not NAMED.search(line)]


def name_of(mark: ast.expr) -> str:
    """Return `skip` for `pytest.mark.skip` and `pytest.mark.skip(…)`."""
    text = ast.unparse(mark.func if isinstance(mark, ast.Call) else mark)
    return text.removeprefix("pytest.mark.")


@cache
def names_in(file: str) -> frozenset[str]:
    """Return the names of the tests of a module that are not skipped on every machine."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not {name_of(mark) for mark in node.decorator_list} & NEVER
    )


def missing(text: str) -> list[str]:
    """Return the tests that a page names and that are not there."""
    return [f"{file}::{name}" for file, name in NAMED.findall(text) if name not in names_in(file)]


def test_each_promise_names_a_test() -> None:
    """A promise without a test is a hope."""
    assert len(promises(PAGE.read_text())) > 30
    assert without_a_test(PAGE.read_text()) == []


def test_each_named_test_exists() -> None:
    """A test that is renamed or skipped is renamed or replaced on the page."""
    assert missing(PAGE.read_text()) == []


def test_no_promise_is_made_twice() -> None:
    """Rows that other branches of work added may repeat one another."""
    rows = [line.split(" | ")[0] for line in promises(PAGE.read_text())]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize(
    ("row", "names_one"),
    [
        ("| nothing runs | `tests/test_security_page.py::test_each_promise_names_a_test` |", True),
        ("| nothing runs | soon |", False),
        ("Nothing runs.", False),
        ("- nothing runs: `tests/test_security_page.py`", False),
    ],
)
def test_a_row_or_a_sentence_without_a_test_is_found(row: str, names_one: bool) -> None:
    """Sentences and list items between the tables count too."""
    page = f"# Security\n\n## The promises\n\n{HEADING}\n|---|---|\n{row}\n\n## Not promised\n\nAnything else.\n"
    assert promises(page) == [row]
    assert without_a_test(page) == ([] if names_one else [row])


def test_a_test_that_is_not_there_is_found() -> None:
    """A wrong file and a wrong name are both found."""
    assert missing("`tests/test_none.py::test_x`") == ["tests/test_none.py::test_x"]
    assert missing("`tests/test_security_page.py::test_x`") == ["tests/test_security_page.py::test_x"]
