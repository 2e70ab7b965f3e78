"""Type checkers report the mistakes of hook authors, and infer the documented types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "typing"
ROOT = HERE.parent.parent
FILES = [HERE / "right.py", HERE / "wrong.py"]

Errors = set[tuple[str, int]]


def _run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command, *map(str, FILES)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
        timeout=300,
        check=False,
    )
    # Exit code 1 means found errors; other codes mean a broken checker.
    assert done.returncode == 1, done.stderr
    return done.stdout


def run_mypy(cache: Path) -> Errors:
    """Return the errors of mypy in strict mode, as file name and line."""
    # The project's own configuration excludes wrong.py.
    config = cache / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\nmypy_path = tests\nexplicit_package_bases = True\n")
    text = _run("mypy", "--config-file", str(config), "--cache-dir", str(cache / "mypy"), "--output", "json")
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {(Path(each["file"]).name, each["line"]) for each in found if each["severity"] == "error"}


def run_basedpyright(cache: Path) -> Errors:
    """Return the errors of basedpyright, without its many warnings, as file name and line."""
    found = json.loads(_run("basedpyright", "--outputjson", "--level", "error"))["generalDiagnostics"]
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found if each["severity"] == "error"
    }


@pytest.mark.parametrize("check", [run_mypy, run_basedpyright])
@pytest.mark.slow
def test_a_type_checker_sees_every_marked_mistake_and_nothing_else(
    check: Callable[[Path], Errors], tmp_path: Path
) -> None:
    """`wrong.py` has an error on each marked line; `right.py` has none, and all its `assert_type` hold."""
    marked = {
        (path.name, number)
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith("# ERROR")
    }
    found = check(tmp_path)
    assert sorted(found - marked) == [], "errors on lines that are right"
    assert sorted(marked - found) == [], "mistakes that were not seen"
