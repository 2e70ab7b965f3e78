"""The fixtures and settings of all tests."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from agent_hooks.hooks.bytecode import cache_directory
from look.browser import NO_BROWSER
from other_agent import OtherAgent, end_server
from recording import Recorded
from running import Command
from support import EXAMPLES
from tmux import MISSING

# These are the fixtures that hook authors use.
pytest_plugins = ["agent_hooks.testing.fixtures"]

# The time and size of an example depend on the machine and on chance, so no health check applies to them.  The suite
# takes the same few examples each time, so that a failure comes from the change under test.  `.ci/nightly` takes five
# times as many.  The profile `explore` searches for new ones.
_UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
_USUAL = settings(deadline=None, suppress_health_check=_UNHURRIED)
settings.register_profile("suite", _USUAL, derandomize=True, max_examples=EXAMPLES // 5)
settings.register_profile("nightly", _USUAL, derandomize=True, max_examples=EXAMPLES)
settings.register_profile("explore", _USUAL, max_examples=3000)
settings.load_profile("suite")


# The rooms where concurrency is the point. Their async tests run on trio too. In other rooms they would show no more.
_ON_TRIO_TOO = {"concurrency", "dispatch", "hooks", "host", "pipeline", "runner"}
# Tests of attacks, of whole programs at a terminal and of each byte of a file: many processes, or many seconds, each.
_LONG = {
    "hostile",
    "terminal",
    "checkpoints/test_checkpoints.py",
    "cli/test_shells.py",
    "cli/test_cli_models.py",
    "cli/test_cli_trust.py",
    "cli/test_cli_writers.py",
    "examples/test_examples_mcp.py",
    "examples/test_examples_models.py",
    "host/test_models_errors.py",
    "concurrency/test_process.py",
    "installs/test_interrupted.py",
    "isolation/test_both_modes.py",
    "isolation/test_dependencies.py",
    "isolation/test_restarts.py",
    "records/test_otlp.py",
    "server/test_hostile_hooks.py",
    "server/test_hostile_reloads.py",
    "server/test_server_files.py",
    "storage/test_kills.py",
    "trust/test_foreign_checkpoints.py",
    "trust/test_gate_off.py",
    "trust/test_store.py",
    "values/test_odd_inputs.py",
}
# Long tests as well, whose processes and forks run lines that no other test runs: they are measured as short ones are.
_LONG_AND_MEASURED = {
    "bridges/test_turns_of_agents.py",
    "chaos",
    "checkpoints/test_restore.py",
    "cli/test_bridges_of_commands.py",
    "cli/test_cli_conventions.py",
    "cli/test_cli_default_model.py",
    "cli/test_cli_doctor.py",
    "cli/test_cli_install.py",
    "cli/test_cli_rpc.py",
    "installs/test_agents.py",
    "installs/test_doctor_of_agents.py",
    "isolation/test_cancelling.py",
    "isolation/test_faults.py",
    "server/test_plugin_link.py",
    "server/test_served.py",
    "server/test_sessions.py",
    "server/test_tripwire.py",
}
# Long tests that are measured and run lines of the core: `.ci/run` runs them after the short ones.
_LONG_OF_CORE = {
    "checkpoints/test_odd_turns.py",
    "checkpoints/test_turns.py",
    "cli/test_cli_foreign_sessions.py",
    "cli/test_cli_other_agents.py",
    "cli/test_cli_piped.py",
    "cli/test_cli_reload.py",
    "cli/test_cli_transformers.py",
    "cli/test_cli_unlock.py",
    "host/test_models_instructions.py",
    "host/test_models_points.py",
    "host/test_models_wire.py",
    "isolation/test_crossing.py",
    "isolation/test_modes.py",
    "look/test_turn_of_a_card.py",
    "server/test_renamed.py",
    "server/test_siteless.py",
    "server/test_unserved.py",
    "ui/test_terminal_ui.py",
    "test_benchmarks.py",
}

# Folders and files of tests whose processes run some lines that no test runs by itself or in a fork.
_MEASURED = {
    "isolation",
    "server",
    "test_cli_reload.py",
    "test_cli_rpc.py",
    "test_cli_unlock.py",
    "test_completion.py",
    "test_pipes.py",
}
_MEASURED_THOUGH_SLOW = {"terminal", "test_cli_trust.py"}


# The programs that some tests need, by marker: whether one is missing, and the line that says so.
_PROGRAMS = {
    "terminal": (
        MISSING,
        "tmux IS MISSING: the tests in a real terminal WERE NOT RUN; install it (apt-get install tmux)",
    ),
    "browser": (
        bool(NO_BROWSER),
        f"{NO_BROWSER}: the tests of the page in a real browser WERE NOT RUN",
    ),
    **{
        shell: (
            shutil.which(shell) is None,
            f"{shell} IS MISSING: the tests of TAB in a real {shell} WERE NOT RUN; install it (apt-get install {shell})",
        )
        for shell in ("zsh", "fish")
    },
    "node": (
        shutil.which("node") is None,
        "Node.js IS MISSING: the tests of the plugins of other agents WERE NOT RUN; install it (apt-get install nodejs)",
    ),
}


def _room(item: pytest.Item) -> str:
    """Return the folder of a test below `tests`."""
    return item.path.relative_to(Path(__file__).parent).parts[0]


def _names(item: pytest.Item) -> set[str]:
    """Return the names by which the sets above may hold a test: its folder, its file, or both."""
    folder, file = item.path.parent.name, item.path.name
    return {folder, file, f"{folder}/{file}"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests, and deselect tests whose program is missing."""
    for item in items:
        if not (_LONG | _LONG_AND_MEASURED | _LONG_OF_CORE).isdisjoint(_names(item)):
            item.add_marker(pytest.mark.slow)
        if not _LONG_OF_CORE.isdisjoint(_names(item)):
            item.add_marker(pytest.mark.core)
    for marker, (is_missing, _) in _PROGRAMS.items():
        if is_missing and (left_out := [item for item in items if item.get_closest_marker(marker)]):
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if not item.get_closest_marker(marker)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say so, loudly."""
    for marker, (is_missing, text) in _PROGRAMS.items():
        # The usual run leaves out the browser's group in any case.
        if is_missing and (marker != "browser" or "not browser" not in terminalreporter.config.getoption("markexpr")):
            terminalreporter.write_line(text, red=True, bold=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run more tests at once than there are processors: many wait for a program, or for a deadline."""
    return (3 * len(os.sched_getaffinity(0)) + 1) // 2 if hasattr(os, "sched_getaffinity") else 3


@pytest.fixture
def anyio_backend() -> str:
    """Run an async test on asyncio, unless it chooses its backends or `pytest_generate_tests` does."""
    return "asyncio"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run async tests on both backends where concurrency is the point."""
    chosen = any("anyio_backend" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "anyio_backend" in metafunc.fixturenames and not chosen and _room(metafunc.definition) in _ON_TRIO_TOO:
        metafunc.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c() -> None:
    """Let SIGINT count, also for the programs a test starts: a shell starts its background jobs with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep bytecode of the tests' hooks out of the person's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        cache_directory.cache_clear()
        yield


_AGENTS = ("AI_AGENT", "CLAUDE", "CLINE", "CODEX", "COPILOT", "CURSOR", "GEMINI", "OPENCODE", "QWEN")


@pytest.fixture(scope="session", autouse=True)
def _no_marks_of_agents() -> Iterator[None]:
    """Remove the variables of an agent that runs the tests: below an agent, the commands of a person refuse."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(_AGENTS)]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a new path for the home of each test of this process."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in count())


@pytest.fixture(autouse=True)
def _own_home(_homes: Iterator[Path]) -> Iterator[None]:
    """Keep the tests out of the person's home, and out of each other's: a journal or an alarm there outlives its test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("AGENT_HOME", raising=False)
        home = next(_homes)
        home.mkdir()
        patch.setenv("HOME", str(home))
        yield


@pytest.fixture(autouse=True)
def _unmeasured_processes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave most processes out of the measurement of coverage, which costs each of them 0.3 s and more.

    Forks of the command line cost less, and are measured, except those of most slow tests.
    """
    names = _names(request.node)
    is_slow = request.node.get_closest_marker("slow") is not None and (_LONG_AND_MEASURED | _LONG_OF_CORE).isdisjoint(
        names
    )
    is_measured = not names.isdisjoint(_MEASURED_THOUGH_SLOW if is_slow else _MEASURED)
    measuring = [name for name in os.environ if name.startswith("COVERAGE")]
    with pytest.MonkeyPatch.context() as patch:
        if measuring and (is_measured or not is_slow):
            patch.setattr(Command, "measured", True)
        if not is_measured:
            for name in measuring:
                patch.delenv(name)
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
    """Remove the variables of agents that an earlier fixture has set."""
    for name in [name for name in os.environ if name.startswith(_AGENTS)]:
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
