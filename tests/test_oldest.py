"""`constraints-oldest.txt` pins the lower bounds of pyproject.toml; CI runs the tests with it once more."""

from __future__ import annotations

import tomllib

from checks.environments import ROOT
from checks.oldest import LEFT_OUT, PATTERNS_LEFT_OUT


def test_the_oldest_versions_are_the_lower_bounds_of_pyproject() -> None:
    """A bound without a test is a guess."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    promised = [*project["dependencies"], *extras["http"], *extras["otel"], *extras["trio"], *extras["dev"]]
    bounds = {line.replace(">=", "==").partition(",")[0] for line in promised if ">=" in line}
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    pinned = {line for line in lines if line and not line.startswith("#")}
    # The tests that run with these versions need none of the others.
    left_out = ("basedpyright", "coverage", "mcp", "mypy", "playwright", "ruff")
    assert pinned == {bound for bound in bounds if not bound.startswith(left_out)}


def test_each_test_that_is_left_out_with_the_oldest_versions_exists() -> None:
    """Otherwise a test file that moves would run without the packages that it needs."""
    assert not [pattern for pattern in (*LEFT_OUT, *PATTERNS_LEFT_OUT) if not any(ROOT.glob(pattern))]
