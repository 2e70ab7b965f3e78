"""Each promise of docs/behaviours.md is shown by a test that runs."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEVER = {"skip", "xfail"}
CLIENT = "client"
WITH_CLIENT = "In real agents"
"""The heading of the rows that only `make test-clients` can show."""

Wearers = dict[str, set[str]]
"""Ids, each with the markers that leave its test out; the empty text stands for a test of the suite."""


def promised() -> dict[str, str]:
    """Return the ids of the page's rows, each with the heading above it."""
    heading = ""
    ids: dict[str, str] = {}
    for line in (ROOT / "docs" / "behaviours.md").read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif row := re.match(r"\| ([A-Z]+\d+) \|", line):
            assert row[1] not in ids, f"{row[1]} stands twice"
            ids[row[1]] = heading
    return ids


@cache
def deselected() -> set[str]:
    """Return the markers of tests that the default options of pytest leave out, and that need a client to be installed.

    `.ci/run` runs the group `slow` with the rest, and the group `browser` as a step of its own.
    """
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    return set(re.findall(r"not (\w+)", options)) - {"slow", "browser"}


def worn_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield each id that a test of a module wears, and the marker that leaves this test out, or an empty text.

    A test that is skipped on every machine wears nothing. One that some machines skip counts.
    """
    tree = ast.parse(source)
    module_marks = [
        mark
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for mark in (node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value])
    ]
    if not skips(tree.body):
        yield from worn_below(tree.body, module_marks)


def worn_below(body: list[ast.stmt], inherited: list[ast.expr]) -> Iterator[tuple[str, str]]:
    """Yield the ids and markers of the tests of a module or class, whose own marks hold for them too."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from worn_below(node.body, [*inherited, *node.decorator_list])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = [*inherited, *node.decorator_list]
            names = {name_of(mark) for mark in marks}
            if names & NEVER or any(always_skips(mark) for mark in marks) or skips(node.body):
                continue
            left_out = next(iter(names & deselected()), "")
            for mark in marks:
                if name_of(mark) == "behaviour" and isinstance(mark, ast.Call):
                    yield from ((str(ast.literal_eval(arg)), left_out) for arg in mark.args)


def name_of(mark: ast.expr) -> str:
    """Return `skip` for `pytest.mark.skip` and `pytest.mark.skip(…)`."""
    text = ast.unparse(mark.func if isinstance(mark, ast.Call) else mark)
    return text.removeprefix("pytest.mark.")


def always_skips(mark: ast.expr) -> bool:
    """Return whether a mark is a `skipif` with a constant condition."""
    if name_of(mark) != "skipif" or not isinstance(mark, ast.Call) or not mark.args:
        return False
    return isinstance(mark.args[0], ast.Constant) and bool(mark.args[0].value)


def skips(body: list[ast.stmt]) -> bool:
    """Return whether a body calls `pytest.skip` without a condition."""
    calls = [node.value for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return any(ast.unparse(call.func) == "pytest.skip" for call in calls)


@cache
def worn() -> Wearers:
    """Return the ids that the tests wear."""
    ids: Wearers = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path != Path(__file__):
            for row, left_out in worn_in(path.read_text()):
                ids[row].add(left_out)
    return ids


def without_a_test(rows: dict[str, str], wearers: Wearers) -> list[str]:
    """Return the rows that no test of the run they belong to wears."""
    return [row for row, heading in rows.items() if (CLIENT if heading == WITH_CLIENT else "") not in wearers[row]]


def test_every_promise_is_worn_by_a_test_that_runs() -> None:
    """The suite shows each row, except those of the real client, which `make test-clients` shows."""
    assert without_a_test(promised(), worn()) == []


def test_no_test_wears_a_promise_that_is_not_made() -> None:
    """An id that is not on the page is a typo or a row that has gone."""
    assert sorted(worn().keys() - promised().keys()) == []


def test_each_promise_has_an_id_of_its_own() -> None:
    """Two rows with one id could hide one without a test; the page is not empty."""
    assert len(promised()) > 50


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.skip\n@pytest.mark.behaviour("X1")\ndef test_it(): ...',
        '@pytest.mark.behaviour("X1")\n@pytest.mark.skip(reason="slow")\nasync def test_it(): ...',
        '@pytest.mark.behaviour("X1")\n@pytest.mark.skipif(True, reason="slow")\ndef test_it(): ...',
        '@pytest.mark.behaviour("X1")\n@pytest.mark.xfail\ndef test_it(): ...',
        '@pytest.mark.behaviour("X1")\ndef test_it():\n    pytest.skip("slow")',
        '@pytest.mark.behaviour("X1")\n@pytest.mark.client\ndef test_it(): ...',
        'pytestmark = pytest.mark.client\n@pytest.mark.behaviour("X1")\ndef test_it(): ...',
        'pytestmark = [pytest.mark.anyio, pytest.mark.skip("slow")]\n@pytest.mark.behaviour("X1")\ndef test_it(): ...',
        '@pytest.mark.client\nclass TestIt:\n    @pytest.mark.behaviour("X1")\n    def test_it(self): ...',
        "def test_it(): ...",
    ],
)
def test_a_test_that_never_runs_shows_no_promise(source: str) -> None:
    """A skipped or deselected test leaves its row without a test."""
    ids: Wearers = defaultdict(set)
    for row, left_out in worn_in(source):
        ids[row].add(left_out)
    assert without_a_test({"X1": "Programs"}, ids) == ["X1"]


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.behaviour("X0", "X1")\nasync def test_it(): ...',
        '@pytest.mark.behaviour("X1")\n@pytest.mark.skipif(sys.platform != "linux")\ndef test_it(): ...',
        'pytestmark = pytest.mark.terminal\n@pytest.mark.behaviour("X1")\ndef test_it(): ...',
        'class TestIt:\n    @pytest.mark.behaviour("X1")\n    def test_it(self): ...',
    ],
)
def test_a_test_that_runs_on_some_machine_shows_its_promise(source: str) -> None:
    """A condition on the machine, or tmux, may leave a test out elsewhere."""
    ids: Wearers = defaultdict(set)
    for row, left_out in worn_in(source):
        ids[row].add(left_out)
    assert without_a_test({"X1": "Programs"}, ids) == []


def test_a_row_of_the_real_client_needs_a_test_with_the_client() -> None:
    """A test of the default run cannot show it."""
    assert without_a_test({"B20": WITH_CLIENT}, defaultdict(set, {"B20": {""}})) == ["B20"]
    assert without_a_test({"B20": WITH_CLIENT}, defaultdict(set, {"B20": {CLIENT}})) == []


def test_each_table_of_the_page_is_whole() -> None:
    """A table has one heading, and each row below it as many cells."""
    lines = (ROOT / "docs" / "behaviours.md").read_text().splitlines()
    broken = []
    for above, line in zip(["", *lines], lines, strict=False):
        in_table, begins = above.startswith("|"), line.startswith("| id |")
        if line.startswith("|") and (in_table is begins or cells(line) != (cells(above) if in_table else 4)):
            broken.append(line)
        if in_table and line and not line.startswith("|"):
            broken.append(line)
    assert broken == []


def cells(line: str) -> int:
    """Return the number of cells of a table's row; a bar behind a backslash is text."""
    return len(re.findall(r"(?<!\\)\|", line)) - 1
