"""`constraints-oldest.txt`, with which CI runs the tests once more, is what pyproject.toml promises."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_oldest_versions_are_the_lower_bounds_of_pyproject() -> None:
    """A bound that nobody tests is a guess."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    promised = [*project["dependencies"], *extras["http"], *extras["trio"], *extras["dev"]]
    bounds = {line.replace(">=", "==") for line in promised if ">=" in line}
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    pinned = {line for line in lines if line and not line.startswith("#")}
    left_out = ("basedpyright", "coverage", "mypy", "ruff")  # tools; the tests need none of them
    assert pinned == {bound for bound in bounds if not bound.startswith(left_out)}
