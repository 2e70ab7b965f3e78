"""The fixtures and settings of all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from agent_hooks.hooks.bytecode import cache_directory
from other_agent import OtherAgent, end_server
from recording import Recorded
from running import Command
from tmux import MISSING

# These are the fixtures that hook authors use.
pytest_plugins = ["agent_hooks.testing.fixtures"]

# The time and size of an example depend on the machine and on chance, so no health check applies to them.  The suite
# takes the same examples each time, so that a failure comes from the change under test; `make explore` looks for others.
_UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile("suite", deadline=None, suppress_health_check=_UNHURRIED, derandomize=True)
settings.register_profile("explore", deadline=None, suppress_health_check=_UNHURRIED, max_examples=3000)
settings.load_profile("suite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that need tmux where there is none."""
    if MISSING and (terminal := [item for item in items if item.get_closest_marker("terminal")]):
        config.hook.pytest_deselected(items=terminal)
        items[:] = [item for item in items if item not in terminal]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say so, loudly."""
    if MISSING:
        text = "tmux IS MISSING: the tests in a real terminal WERE NOT RUN; install it (apt-get install tmux)"
        terminalreporter.write_line(text, red=True, bold=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run more tests at once than there are processors: many wait for a program, or for a deadline."""
    return (3 * len(os.sched_getaffinity(0)) + 1) // 2 if hasattr(os, "sched_getaffinity") else 3


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
def project(tmp_path: Path, home: Path) -> Iterator[Path]:
    """Give an empty project directory; a server that answered events in it ends with the test."""
    path = tmp_path / "project"
    path.mkdir()
    yield path
    end_server(path)


@pytest.fixture
def command(project: Path) -> Command:
    """Give the command line, in an empty project."""
    return Command(project)


@pytest.fixture
def no_agent_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests themselves may run inside an agent, whose variables would count."""
    agents = ("AI_AGENT", "CLAUDE", "CLINE", "CODEX", "COPILOT", "CURSOR", "GEMINI", "OPENCODE", "QWEN")
    for name in [name for name in os.environ if name.startswith(agents)]:
        monkeypatch.delenv(name)


@pytest.fixture
def agent(command: Command, monkeypatch: pytest.MonkeyPatch) -> OtherAgent:
    """Give another agent in an empty project."""
    for name in [name for name in os.environ if name.startswith(("CLAUDE", "COPILOT", "CURSOR", "GEMINI"))]:
        monkeypatch.delenv(name)
    return OtherAgent(command)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Give a home for records."""
    return Recorded(tmp_path)
