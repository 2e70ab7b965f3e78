"""Fixtures for the commands that concern another agent."""

from __future__ import annotations

import json
import os
import signal
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
def served(command: Command) -> Iterator[Command]:
    """Give the command line; the resident server that comes up for its project ends with the test."""
    yield command
    for server in json.loads(command("serve", "--status", "--json").stdout)["servers"]:
        if server["project"] == str(command.project):
            os.kill(server["pid"], signal.SIGKILL)
