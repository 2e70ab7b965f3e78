"""The promises of docs/behaviours.md and the tests that wear their ids."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


def promised() -> list[str]:
    """Return the ids of the page's rows."""
    page = (ROOT / "docs" / "behaviours.md").read_text()
    return re.findall(r"^\| ([A-Z]\d+) \|", page, re.MULTILINE)


@cache
def worn() -> dict[str, str]:
    """Return the ids that tests wear, each with a test that does."""
    ids: dict[str, str] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.behaviour":
                        ids |= {ast.literal_eval(arg): f"{path.name}::{node.name}" for arg in mark.args}
    return ids


def test_every_promise_is_worn_by_a_test() -> None:
    """A row without a test is a promise nobody keeps."""
    assert [row for row in promised() if row not in worn()] == []


def test_no_test_wears_a_promise_that_is_not_made() -> None:
    """An id that is not on the page is a typo or a row that has gone."""
    assert {row: test for row, test in worn().items() if row not in promised()} == {}


def test_each_promise_has_an_id_of_its_own() -> None:
    """Two rows with one id could hide one without a test."""
    assert len(promised()) == len(set(promised())) > 50
