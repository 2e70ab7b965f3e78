"""The fixtures for the tests of the built-in tools."""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.host.tools import builtin_tools
from agent_hooks.values.content import ToolOutput

Call = Callable[..., Awaitable[ToolOutput]]
Git = Callable[..., None]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Name the folder for the full text of cut output; it does not exist yet."""
    return tmp_path / "kept"


@pytest.fixture
def call(project: Path, kept: Path) -> Call:
    """Run a built-in tool in the project: `output = await call("read", path="x")`."""
    tools = {tool.name: tool for tool in builtin_tools(cwd=str(project), output_directory=lambda: kept)}

    async def run(name: str, /, **input: Any) -> ToolOutput:
        return await tools[name].execute("call-1", input)

    return run


@pytest.fixture
def git(project: Path) -> Git:
    """Make the project a git work tree, and return a function that runs git in it."""

    def run(*args: str) -> None:
        subprocess.run(["git", *args], cwd=project, check=True, capture_output=True)

    run("init", "-q")
    return run


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide all programs from PATH."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
