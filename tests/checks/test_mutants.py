"""The mutants of a tiny package are caught, missed, explained and kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from checks.mutations import compiled, mutants_of
from support import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
MODULE = '''
"""A module."""
import types


class Counter:
    """A class."""

    total = 0

    def add(self, number):
        """Add a number."""
        self.total += number
        self.last = number
        if number > 100:
            raise ValueError(number)


def count(limit):
    done = 0
    while done < limit:
        done += 1
    return done


def outer(flag):
    def inner():
        if flag:
            return "yes"
        return None

    return inner


@types.coroutine
def two_steps():
    yield 1
    yield 2
'''
TESTS = """
import tiny

LATER = tiny.outer(True)

def test_add():
    counter = tiny.Counter()
    counter.add(2)
    counter.add(3)
    assert counter.total == 5

def test_count():
    assert tiny.count(3) == 3

def test_inner(tmp_path):
    (tmp_path / "file").write_text("")
    assert LATER() == "yes"
    assert tiny.outer(False)() is None

def test_two_steps():
    async def call():
        await tiny.two_steps()
    steps = call()
    assert [steps.send(None), steps.send(None)] == [1, 2]
"""
REASON = """
[[mutant]]
module = "tiny.py"
function = "Counter.add"
kind = "deleted"
statement = "self.last = number"
reason = "nothing reads it"
"""
AT_IMPORT = """
NAMES = []
UNUSED = []

def register(name):
    NAMES.append(name)
    UNUSED.append(name)
    return name

FIRST = register("a").upper()

def use():
    return NAMES
"""
Hunt = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def hunt(tmp_path: Path) -> Hunt:
    """Give a function that mutates the tiny package and returns the exit code and the lines of the output."""
    (tmp_path / "tiny.py").write_text(MODULE.lstrip())
    (tmp_path / "test_tiny.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*args: str) -> tuple[int, list[str]]:
        line = [sys.executable, "-m", "checks.mutants", "tiny.py", "--tests", "test_tiny.py"]
        options = ["--state", "state.jsonl", "--reasons", "reasons.toml", *args]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*line, *options], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE * 2
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout.splitlines()

    return run


MISSED = [
    "tiny.py:13: Counter.add: deleted `self.last = number`",
    "tiny.py:15: Counter.add: deleted `raise ValueError(number)`",
]


def test_mutants_that_no_test_catches_are_printed(hunt: Hunt) -> None:
    """Each has its place; a loop that does not end counts as caught."""
    code, lines = hunt()
    assert code == 1
    assert [line for line in lines if line.startswith("tiny.py")] == [
        MISSED[0],
        "tiny.py:14: Counter.add: deleted `if number > 100:`",
        MISSED[1],
    ]
    assert lines[-1].startswith("12 caught, 1 hung, 3 missed; ")
    assert lines[-1].endswith(" min in all")


def test_results_are_kept_until_the_module_or_the_tests_change(hunt: Hunt, tmp_path: Path) -> None:
    """A missed mutant is tried again when a test has changed.  Changed docstrings and comments do not count."""
    first = hunt()
    assert "16 mutants; 0 of them are known from an earlier run" in first[1]
    again = hunt()
    assert "16 mutants; 16 of them are known from an earlier run" in again[1]
    assert again[1][-1].startswith("12 caught, 1 hung, 3 missed; ")
    (tmp_path / "test_more.py").write_text(
        "import pytest, tiny\ndef test_large():\n    with pytest.raises(ValueError): tiny.Counter().add(101)\n"
    )
    _, lines = hunt("--tests", "test_tiny.py", "test_more.py")
    assert "16 mutants; 13 of them are known from an earlier run" in lines
    assert [line for line in lines if line.startswith("tiny.py")] == MISSED[:1]
    (tmp_path / "tiny.py").write_text("# A comment.\n" + MODULE.lstrip().replace("Add a number", "Add numbers"))
    assert "16 mutants; 13 of them are known from an earlier run" in hunt()[1]
    (tmp_path / "tiny.py").write_text(MODULE.lstrip() + "more = 1\n")
    assert "16 mutants; 0 of them are known from an earlier run" in hunt()[1]


def test_a_run_that_was_cut_off_is_taken_up_again(hunt: Hunt) -> None:
    """The mutants that were not tried are counted, and tried by the next run."""
    code, lines = hunt("--seconds", "0")
    assert code == 0
    assert "; 16 were not tried, because the time was over; " in lines[-1]
    assert hunt()[1][-1].startswith("12 caught, 1 hung, 3 missed; ")


def test_a_mutant_with_a_reason_is_not_tried(hunt: Hunt, tmp_path: Path) -> None:
    """A reason for a statement that is not there any more has to go."""
    (tmp_path / "reasons.toml").write_text(REASON)
    code, lines = hunt()
    assert MISSED[0] not in lines
    assert MISSED[1] in lines
    (tmp_path / "reasons.toml").write_text(REASON.replace("self.last", "self.first"))
    code, lines = hunt()
    assert code == 1
    assert (
        "no statement has this key any more, so its reason has to go:"
        " tiny.py::Counter.add::deleted::self.first = number::1"
    ) in lines


def test_only_changed_lines_are_mutated(hunt: Hunt, tmp_path: Path) -> None:
    """Lines count that differ from a commit."""

    def git(*args: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *args], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("add", "tiny.py")
    git("commit", "-m", "one")
    code, lines = hunt("--changed", "HEAD")
    assert code == 0
    assert lines[-1].startswith("0 caught, 0 hung, 0 missed; ")
    (tmp_path / "tiny.py").write_text(MODULE.lstrip().replace("self.last = number", "self.last = -number"))
    code, lines = hunt("--changed", "HEAD")
    assert code == 1
    assert lines[-2] == MISSED[0].replace("= number", "= -number")
    assert lines[-1].startswith("0 caught, 0 hung, 1 missed; ")


def test_a_statement_that_runs_at_import_only_is_mutated_in_a_fresh_process(hunt: Hunt, tmp_path: Path) -> None:
    """The tests of the module run there; a mutant that breaks the import is caught."""
    (tmp_path / "tiny.py").write_text(AT_IMPORT)
    (tmp_path / "test_tiny.py").write_text("import tiny\ndef test_use():\n    assert tiny.use() == ['a']\n")
    code, lines = hunt()
    assert code == 1
    assert [line for line in lines if line.startswith("tiny.py")] == [
        "tiny.py:7: register: deleted `UNUSED.append(name)`"
    ]
    assert lines[-1].startswith("3 caught, 0 hung, 1 missed; ")


def test_a_test_that_fails_without_a_mutant_is_left_out_and_named(hunt: Hunt, tmp_path: Path) -> None:
    """It would catch every mutant."""
    with (tmp_path / "test_tiny.py").open("a") as file:
        file.write("def test_wrong():\n    tiny.Counter().add(1)\n    assert False\n")
    lines = hunt()[1]
    assert "left out, because it fails without any mutant: test_tiny.py::test_wrong" in lines
    assert MISSED[0] in lines


@pytest.mark.parametrize(
    "statement",
    [
        '"""A docstring."""',
        "pass",
        "...",
        "x: int",
        "assert x",
        "raise NotImplementedError",
        "raise AssertionError('never')",
        "return False",
        "logger.info(x)",
        "return",
        "if x:\n        return None",
        "global y",
    ],
)
def test_statements_without_effect_have_no_mutants(statement: str) -> None:
    """Deleting one of them changes nothing for a caller."""
    found = mutants_of("m.py", f"def f(x, logger) -> bool:\n    {statement}\n")
    assert [mutant.text for mutant in found if mutant.text not in {"if x:"}] == []


def test_a_continue_or_return_that_skips_something_has_a_mutant() -> None:
    """At the end of a loop, or of a function, it skips nothing."""
    loop = "    for y in x:\n        if y:\n            continue\n        print(y)\n        continue\n"
    source = f"def f(x):\n{loop}    return\n"
    assert [(mutant.line, mutant.kind) for mutant in mutants_of("m.py", source)] == [
        (2, "deleted"),
        (3, "deleted"),
        (3, "negated"),
        (4, "deleted"),
        (5, "deleted"),
    ]


def test_a_deleted_yield_leaves_a_generator() -> None:
    """The names and the nature of the function stay, so that the code can be swapped."""
    source = "def f():\n    yield 1\n"
    space: dict[str, Callable[[], object]] = {}
    exec(compiled(source, mutants_of("m.py", source)[0], "m.py"), space)
    assert list(space["f"]()) == []  # type: ignore[call-overload]
