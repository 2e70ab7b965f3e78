"""Fixtures for the installations in other agents."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Command


@pytest.fixture
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`agent-hooks` is there, as in a shell whose environment is active."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.fixture
def command(project: Path) -> Command:
    """Give the command line in an empty project, which no person has approved, so that the home is empty too."""
    command = Command(project)
    command.trusted = False
    return command


@pytest.fixture
def served(command: Command) -> Iterator[Command]:
    """Give the command line; the servers that come up end with the test."""
    yield command
    command("serve", "--stop", code=None)
