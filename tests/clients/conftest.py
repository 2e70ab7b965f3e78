"""Claude Code for each test; where it is not installed, no test of this directory runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.driving import PROGRAM, ClaudeCode


@pytest.fixture
def bare(project: Path, home: Path) -> ClaudeCode:
    """Give Claude Code as it comes, without our hooks."""
    if not PROGRAM.exists():
        pytest.skip("CLAUDE CODE IS MISSING: `make clients` installs it, with npm")
    return ClaudeCode(project, home)


@pytest.fixture
def claude(bare: ClaudeCode) -> ClaudeCode:
    """Give Claude Code with our hooks installed."""
    bare.install()
    return bare
