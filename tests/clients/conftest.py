"""Claude Code for each test; where it is not installed, no test of this directory runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clients.driving import PROGRAM, ClaudeCode


@pytest.fixture
def claude(project: Path, home: Path) -> Iterator[ClaudeCode]:
    """Give Claude Code in an empty project."""
    if not PROGRAM.exists():
        pytest.skip("CLAUDE CODE IS MISSING: `make clients` installs it, with npm")
    with closing(ClaudeCode(project, home)) as claude:
        yield claude
