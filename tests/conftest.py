"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from running import Command

pytest_plugins = ["agent_hooks.testing.fixtures"]  # the ones that hook authors use


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both backends."""
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty home directory, also to the programs a test starts."""
    monkeypatch.delenv("AGENT_HOME", raising=False)
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    return path


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """Give an empty project directory."""
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def command(project: Path) -> Command:
    """Give the command line, in an empty project."""
    return Command(project)
