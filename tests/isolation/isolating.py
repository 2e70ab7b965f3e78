"""Hooks that are loaded from a file, inside of the agent or in a process of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal

import anyio

from agent_hooks import Block, HookError, HookRunner, load_hooks
from agent_hooks.hooks.loaded import LoadResult
from agent_hooks.isolation.process import HookProcess
from agent_hooks.settings import HookIsolation, IsolationSettings
from support import PATIENCE

Mode = Literal["inline", "process"]
TELLING = """
import anyio, os, sys, time
from pathlib import Path
from agent_hooks import *
HERE = Path(__file__).parent

def tell(value):
    with open(HERE / "told", "a") as file:
        file.write(f"{value}\\n")
"""


def telling(source: str) -> str:
    """Return a hook whose code may `tell` values to the test; `HERE` is its directory."""
    return TELLING + dedent(source)


def told(tmp_path: Path) -> list[str]:
    """Return the lines that the hooks in a directory have told."""
    path = tmp_path / "told"
    return path.read_text().splitlines() if path.exists() else []


async def until_told(tmp_path: Path, *lines: str) -> None:
    """Wait until the hooks in a directory have told exactly these lines."""
    with anyio.fail_after(PATIENCE):
        while told(tmp_path) != [*lines]:
            await anyio.sleep(0.01)


def isolation_of(mode: Mode | None, **limits: int) -> IsolationSettings:
    """Return the settings by which every hook runs in `mode`, under these limits."""
    return IsolationSettings(others=HookIsolation(mode=mode, **limits))


async def load(tmp_path: Path, *sources: str, mode: Mode | None = "process", **limits: int) -> LoadResult:
    """Write hooks into files and load them."""
    paths = []
    for number, source in enumerate(sources):
        path = tmp_path / f"hook{number or ''}.py"
        path.write_text(dedent(source))
        paths.append(path)
    with anyio.fail_after(PATIENCE):
        return await load_hooks(paths, cwd=tmp_path, isolation=isolation_of(mode, **limits))


class Started:
    """An entered runner of hooks, with its failures."""

    def __init__(self, runner: HookRunner, errors: list[HookError]) -> None:
        self.runner = runner
        self.errors = errors
        self.emit = runner.emit

    async def block_of(self, event: Any) -> Block:
        """Emit an event that the hooks block, and return the block."""
        answer = await self.emit(event)
        assert isinstance(answer, Block), answer
        return answer

    @property
    def texts(self) -> list[str]:
        """The texts of the failures so far."""
        return [error.error for error in self.errors]

    @property
    def process(self) -> HookProcess:
        """The process of the first hook."""
        process = self.runner.hooks[0].process
        assert process is not None
        return process

    @property
    def pid(self) -> int:
        """The id of that process as it runs."""
        assert self.process.pid is not None
        return self.process.pid

    async def failed(self, count: int = 1) -> None:
        """Wait until that many failures were reported."""
        while len(self.errors) < count:
            await anyio.sleep(0.01)


@asynccontextmanager
async def running(
    tmp_path: Path, *sources: str, mode: Mode | None = "process", limits: dict[str, int] | None = None, **options: Any
) -> AsyncIterator[Started]:
    """Load hooks and enter a runner of them, for so long as a test waits."""
    loaded = await load(tmp_path, *sources, mode=mode, **(limits or {}))
    assert not loaded.errors, loaded.errors[0].traceback or loaded.errors[0]
    errors: list[HookError] = []
    with anyio.fail_after(PATIENCE):
        async with HookRunner(loaded, cwd=tmp_path, **options) as runner:
            runner.on_error(errors.append)
            yield Started(runner, errors)
