"""`constraints-oldest.txt` pins the lower bounds of pyproject.toml; CI runs the tests with it once more."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_oldest_versions_are_the_lower_bounds_of_pyproject() -> None:
    """A bound without a test is a guess."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    promised = [*project["dependencies"], *extras["http"], *extras["otel"], *extras["trio"], *extras["dev"]]
    bounds = {line.replace(">=", "==") for line in promised if ">=" in line}
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    pinned = {line for line in lines if line and not line.startswith("#")}
    # The tests that run with these versions need none of the others.
    left_out = ("basedpyright", "coverage", "mcp", "mypy", "playwright", "ruff")
    assert pinned == {bound for bound in bounds if not bound.startswith(left_out)}


def test_each_test_that_make_oldest_leaves_out_exists() -> None:
    """A test file that moves is otherwise run again without the packages that it needs."""
    left_out = re.findall(r"--ignore(?:-glob)?='?([^\s']+)", (ROOT / "Makefile").read_text())
    assert left_out
    assert not [pattern for pattern in left_out if not any(ROOT.glob(pattern))]
