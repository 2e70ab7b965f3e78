"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_hooks.bytecode import cache_directory
from running import Command

pytest_plugins = ["agent_hooks.testing.fixtures"]  # the ones that hook authors use


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both backends."""
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep bytecode of the tests' hooks out of the person's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        cache_directory.cache_clear()
        yield


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
