"""What all tests share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from textwrap import dedent

import pytest

from agent_hooks import LoadedHook, load_hooks
from running import Command

LoadHook = Callable[..., Awaitable[LoadedHook]]


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
def load_hook(tmp_path: Path) -> LoadHook:
    """Write a hook file and load it: `hook = await load_hook("def register(api): ...")`."""

    async def load(source: str, name: str = "hook.py") -> LoadedHook:
        path = tmp_path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(source))
        result = await load_hooks([path], cwd=tmp_path)
        assert not result.errors, result.errors[0]
        return result.hooks[0]

    return load


@pytest.fixture
def command(project: Path) -> Command:
    """Give the command line, in an empty project."""
    return Command(project)
