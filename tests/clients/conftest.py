"""Claude Code for each test of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clients.claude_seat import ClaudeSeat


@pytest.fixture
def claude(project: Path, home: Path) -> Iterator[ClaudeSeat]:
    """Give Claude Code in an empty project; it is an error if it is not installed."""
    claude = ClaudeSeat(project, home)
    with closing(claude.client):
        yield claude
