"""A hook with a header runs in a process of its own, with the packages that uv has fetched for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import agent_hooks
from agent_hooks import Block, HookRunner, LoadResult, load_hooks
from agent_hooks.storage.git import FIXED
from agent_hooks.trust.policy import Trust
from isolation.packages import GATE, Index, header, serving, write_wheel
from other_agent import OtherAgent
from running import Command
from support import PATIENCE, call_of
from trust.approving import approve, state


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """Give the package index of the person's environment, with one package."""
    write_wheel(tmp_path / "wheels")
    with serving(tmp_path / "wheels") as found:
        monkeypatch.setenv("UV_DEFAULT_INDEX", found.url)
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        yield found


def write_gate(directory: Path, *dependencies: str, **options: str) -> Path:
    """Write a gate that blocks every call with the word of its package."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "gate.py"
    path.write_text(header(*(dependencies or ("tinydep",)), **options) + GATE)
    return path


async def reason_of(loaded: LoadResult, cwd: Path) -> str:
    """Return the reason with which the loaded hooks block a call."""
    async with HookRunner(loaded, cwd=cwd) as runner:
        answer = await runner.emit(call_of())
    assert isinstance(answer, Block)
    return answer.reason


def environments(home: Path) -> list[Path]:
    """Return the directories of the environments that were made."""
    return [each.parent for each in (home / ".agent/environments").glob("*/ready")]


# ---- it runs ---------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_hook_with_a_header_gates_with_its_packages(project: Path, index: Index) -> None:
    """An embedding program gets it in a process of its own."""
    loaded = await load_hooks([write_gate(project)], cwd=project)
    assert loaded.errors == []
    assert loaded.hooks[0].isolation == "process"
    reason = await reason_of(loaded, project)
    assert reason.startswith("blocked in ")
    assert str(os.getpid()) not in reason


def test_the_host_runs_it(command: Command, index: Index) -> None:
    """The call is blocked by the word of the package."""
    write_gate(command.project / ".agent/hooks")
    assert "blocked in " in command("run", "--no-session", "@bash ls", code=None).stdout


def test_a_server_runs_it_and_fetches_nothing(agent: OtherAgent, home: Path, index: Index) -> None:
    """Below another agent the environment may be a project's, so the packages have to be there before."""
    write_gate(agent.command.project / ".agent/hooks")
    agent.environment["UV_DEFAULT_INDEX"] = index.url
    denied = agent()["hookSpecificOutput"]
    assert denied["permissionDecision"] == "deny"
    assert "a person fetches them in a terminal: agent-hooks list" in denied["permissionDecisionReason"]
    assert index.asked == []
    assert environments(home) == []
    agent.command("list")
    assert "blocked in " in agent()["hookSpecificOutput"]["permissionDecisionReason"]
    assert agent.server() is not None


@pytest.mark.anyio
async def test_the_packages_of_the_runtime_are_those_of_the_agent(project: Path, index: Index) -> None:
    """A package of the hook that has the same name does not replace them."""
    for name in ("msgspec", "anyio", "agent_hooks"):
        write_wheel(index.directory, name, "raise SystemExit('the wrong one')\n", "99")
    path = write_gate(project, "tinydep", "msgspec==99", "anyio", "agent_hooks")
    text = "import msgspec, anyio, agent_hooks\n" + GATE.replace(
        "os.getpid()", "(msgspec.__file__, agent_hooks.__file__)"
    )
    path.write_text(path.read_text().replace(GATE, text))
    loaded = await load_hooks([path], cwd=project)
    assert loaded.errors == []
    reason = await reason_of(loaded, project)
    assert str(msgspec.__file__) in reason
    assert str(agent_hooks.__file__) in reason


@pytest.mark.anyio
async def test_a_hook_gets_the_version_that_it_asks_for(project: Path, index: Index) -> None:
    """Also of a package that the agent has too; two hooks may have two versions."""
    write_wheel(index.directory, "click", "__version__ = '0.1'\n", "0.1")
    path = write_gate(project, "tinydep", "click==0.1")
    path.write_text(
        path.read_text().replace("import tinydep", "import click, tinydep").replace("os.getpid()", "click.__version__")
    )
    loaded = await load_hooks([path], cwd=project)
    assert loaded.errors == []
    assert await reason_of(loaded, project) == "blocked in 0.1"


# ---- trust -----------------------------------------------------------------------------------------------------------


def test_nothing_is_fetched_before_the_approval(command: Command, home: Path, index: Index) -> None:
    """Commands that read the project, and the approval itself, do not ask the index; the first load does."""
    command.trusted = False
    write_gate(command.project / ".agent/hooks")
    for args in (("run", "--no-session", "@bash ls"), ("list",), ("doctor",), ("trust", "--list"), ("trust", "--yes")):
        command(*args, code=None)
        assert index.asked == [], args
    assert not (home / ".agent/environments").exists()
    command("list")
    assert any("tinydep" in path for path in index.asked)
    assert len(environments(home)) == 1


@pytest.mark.parametrize("place", [".agent/hooks", "tools"])
def test_a_changed_header_or_lock_file_waits_for_an_approval(project: Path, place: str) -> None:
    """Both belong to the set, also those of a hook that the settings name."""
    path = write_gate(project / place)
    if place == "tools":
        (project / ".agent").mkdir()
        (project / ".agent/settings.json").write_text('{"hooks": ["../tools/gate.py"]}')
    approve(project)
    assert state(project).state == "approved"
    path.with_name("gate.py.lock").write_text("version = 1\n")
    assert state(project).state == "changed"
    approve(project)
    path.with_name("gate.py.lock").write_text("version = 2\n")
    assert state(project).state == "changed"
    approve(project)
    path.write_text(path.read_text().replace('"tinydep"', '"tinydep", "evil"'))
    assert state(project).state == "changed"


def test_the_approved_header_counts_until_the_next_approval(command: Command, index: Index) -> None:
    """The changed one fetches nothing."""
    command.trusted = False
    path = write_gate(command.project / ".agent/hooks")
    approve(command.project)
    command("list")
    path.write_text(path.read_text().replace('"tinydep"', '"tinydep", "evil"'))
    index.asked.clear()
    assert "blocked in " in command("run", "--no-session", "@bash ls", code=None).stdout
    assert index.asked == []


def test_an_approved_lock_file_counts_and_not_the_one_on_the_disk(command: Command, index: Index) -> None:
    """A lock file that was added later waits, as each changed file does."""
    command.trusted = False
    path = write_gate(command.project / ".agent/hooks")
    lock(path)
    approve(command.project)
    write_wheel(index.directory, body="WORD = 'newer'\n", version="2.0")
    path.with_name("gate.py.lock").write_text(path.with_name("gate.py.lock").read_text().replace('"1.0"', '"2.0"'))
    assert "blocked in " in command("run", "--no-session", "@bash ls", code=None).stdout


def test_the_question_names_the_dependencies(command: Command, index: Index) -> None:
    """Those of the header, the settings with which they are fetched, and each package of the lock file."""
    command.trusted = False
    path = write_gate(command.project / ".agent/hooks", more="[tool.uv]\nprerelease = 'allow'")
    lock(path)
    asked = command("trust", "--list").stdout + command("list", code=None).stdout
    assert "tinydep (metadata block)" in asked
    assert "uv's setting prerelease = allow (metadata block)" in asked
    assert f"tinydep 1.0 from {index.url} (lock file)" in asked


# ---- the environment -------------------------------------------------------------------------------------------------


def lock(path: Path) -> None:
    """Write the lock file beside a hook as its author does."""
    uv = Path(sys.executable).with_name("uv")
    program = str(uv) if uv.exists() else "uv"
    subprocess.run(
        [program, "--no-config", "lock", "-q", "--script", path, "--python", sys.executable],
        check=True,
        timeout=PATIENCE,
    )


@pytest.mark.anyio
async def test_the_environment_is_made_once(project: Path, home: Path, index: Index) -> None:
    """A later load needs no index, and a hook with the same header shares it; another header gets another one."""
    await load_hooks([write_gate(project)], cwd=project)
    index.asked.clear()
    loaded = await load_hooks([write_gate(project / "other")], cwd=project)
    assert (len(loaded.hooks), index.asked, len(environments(home))) == (1, [], 1)
    await load_hooks([write_gate(project, "tinydep>0")], cwd=project)
    assert len(environments(home)) == 2


@pytest.mark.anyio
async def test_versions_are_kept_without_a_lock_file(project: Path, home: Path, index: Index) -> None:
    """An environment that is made again gets them too."""
    await load_hooks([write_gate(project)], cwd=project)
    write_wheel(index.directory, body="WORD = 'newer'\n", version="2.0")
    [directory] = environments(home)
    shutil.rmtree(directory / "venv")
    loaded = await load_hooks([write_gate(project)], cwd=project)
    assert (await reason_of(loaded, project)).startswith("blocked in ")


@pytest.mark.anyio
async def test_the_lock_file_beside_the_hook_counts(project: Path, index: Index) -> None:
    """It chooses the version; one that does not fit the header is a load error."""
    path = write_gate(project)
    lock(path)
    write_wheel(index.directory, body="WORD = 'newer'\n", version="2.0")
    loaded = await load_hooks([path], cwd=project)
    assert (await reason_of(loaded, project)).startswith("blocked in ")
    write_gate(project, "tinydep>1")
    loaded = await load_hooks([path], cwd=project)
    assert "gate.py.lock does not fit the header; write it again: uv lock --script gate.py" in str(loaded.errors[0])


def test_two_processes_make_it_one_after_the_other(command: Command, home: Path, index: Index) -> None:
    """Both load the hook."""
    path = write_gate(command.project)
    runs = [command.start("check", str(path)) for _ in range(2)]
    outputs = [run.communicate(timeout=PATIENCE) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    assert len(environments(home)) == 1


@pytest.mark.anyio
async def test_an_environment_that_another_user_can_change_is_not_used(project: Path, home: Path, index: Index) -> None:
    """The load error says how to mend the rights."""
    await load_hooks([write_gate(project)], cwd=project)
    (home / ".agent/environments").chmod(0o777)
    loaded = await load_hooks([write_gate(project)], cwd=project)
    assert "chmod go-w" in str(loaded.errors[0])


# ---- a project has no say --------------------------------------------------------------------------------------------


def test_the_files_of_a_project_have_no_say(command: Command, home: Path, index: Index, tmp_path: Path) -> None:
    """Its settings of uv, its Python, its virtual environment and its uv are not used."""
    project, mark = command.project, tmp_path / "mark"
    write_wheel(tmp_path / "evil", body="WORD = 'evil'\n", version="9.0")
    path = write_gate(project / ".agent/hooks")
    (project / ".git").mkdir()
    (project / ".venv/bin").mkdir(parents=True)
    (project / ".venv/bin/uv").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (project / ".venv/bin/uv").chmod(0o755)
    (project / ".python-version").write_text("3.7\n")
    with serving(tmp_path / "evil") as evil:
        settings = f'index-url = "{evil.url}"\n'
        for directory in (project, path.parent, path.parent.parent):
            (directory / "uv.toml").write_text(settings)
            (directory / "pyproject.toml").write_text(f'[project]\nname = "x"\nversion = "1"\n[tool.uv]\n{settings}')
        environment = {
            **os.environ,
            "PATH": f"{project}/.venv/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "VIRTUAL_ENV": f"{project}/.venv",
            "UV_CONFIG_FILE": f"{project}/uv.toml",
            "UV_PROJECT_ENVIRONMENT": f"{project}/.venv",
            "UV_PYTHON": "3.7",
        }
        line = command.line("run", "--no-session", "@bash ls")
        done = subprocess.run(
            line, cwd=project, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert "blocked in " in done.stdout
    assert evil.asked == []
    assert not mark.exists()
    assert sorted(each.name for each in (project / ".venv").iterdir()) == ["bin"]


# ---- failures -------------------------------------------------------------------------------------------------------


def test_without_uv_calls_are_blocked(project: Path, index: Index, tmp_path: Path) -> None:
    """The error names the packages and the remedy."""
    write_gate(project / ".agent/hooks")
    approve(project)
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin/python"
    python.symlink_to(os.path.realpath(sys.executable))
    paths = [str(Path(agent_hooks.__file__).parents[1]), str(Path(str(msgspec.__file__)).parents[1])]
    environment = {**os.environ, "PATH": str(tmp_path / "bin"), "PYTHONPATH": os.pathsep.join(paths)}
    line = [str(python), "-m", "agent_hooks", "run", "--no-session", "@bash ls"]
    done = subprocess.run(
        line, cwd=project, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "this hook could not be loaded" in done.stdout
    assert "header (tinydep) are fetched by uv, which is not installed here; install it: pip install uv" in done.stdout
    assert index.asked == []


def test_offline_calls_are_blocked(command: Command, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the words of uv, and the remedy; the next load tries again."""
    monkeypatch.setenv("UV_OFFLINE", "1")
    write_gate(command.project / ".agent/hooks")
    blocked = " ".join(command("run", "--no-session", "@bash ls", code=None).stdout.split())
    assert "this hook could not be loaded" in blocked
    assert "(tinydep) cannot be fetched" in blocked
    assert "the network was disabled" in blocked
    assert "agent-hooks check gate.py" in blocked
    monkeypatch.delenv("UV_OFFLINE")
    assert "blocked in " in command("run", "--no-session", "@bash ls", code=None).stdout


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("# /// script\nX = 1\n", ":1: its header (# /// script) has no end: write a line # ///"),
        ("\n# /// script\n# dependencies = [\n# ///\n", ":2: its header (# /// script) is no TOML"),
        ("# /// script\n# dependencies = 'x'\n# ///\n", ":1: its header (# /// script) needs a list of texts"),
        (f"{header()}\n{header()}", ":6: its header (# /// script) stands twice"),
        (header("not a name!"), "cannot be fetched"),
        (header(python=">=3.99"), "change requires-python, or run the agent with another Python"),
    ],
)
async def test_a_header_that_cannot_be_followed_is_a_load_error(
    project: Path, index: Index, text: str, error: str
) -> None:
    """The hook is not loaded without its packages."""
    (project / "gate.py").write_text(text + "def register(api): ...\n")
    loaded = await load_hooks(["gate.py"], cwd=project)
    assert loaded.hooks == []
    assert error in str(loaded.errors[0])


@pytest.mark.anyio
async def test_a_lock_file_that_cannot_be_read_is_a_load_error(project: Path, index: Index) -> None:
    """It is never taken for an absent one."""
    path = write_gate(project)
    path.with_name("gate.py.lock").mkdir()
    loaded = await load_hooks([path], cwd=project)
    assert "gate.py.lock is a directory" in str(loaded.errors[0])


@pytest.mark.anyio
@pytest.mark.parametrize("name", [FIXED, "CLAUDECODE"])
async def test_nothing_is_fetched_below_another_agent(
    project: Path, index: Index, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An agent that runs `UV_DEFAULT_INDEX=… agent-hooks list` gets an error; packages that are there count."""
    monkeypatch.setenv(name, "/usr/bin/git")
    loaded = await load_hooks([write_gate(project)], cwd=project)
    assert "nothing is fetched while another agent runs the hooks" in str(loaded.errors[0])
    assert index.asked == []
    monkeypatch.delenv(name)
    await load_hooks([write_gate(project)], cwd=project)
    monkeypatch.setenv(name, "/usr/bin/git")
    assert (await load_hooks([write_gate(project)], cwd=project)).errors == []


# ---- the output of the commands --------------------------------------------------------------------------------------


def test_the_commands_name_the_packages_and_the_lock_file(command: Command, home: Path, index: Index) -> None:
    """That is `check`, `list` and `doctor`."""
    path = write_gate(command.project / ".agent/hooks")
    checked = command("check", str(path)).stdout
    [directory] = environments(home)
    assert f"its packages: tinydep; versions: {directory}/hook.py.lock" in checked
    listed = json.loads(command("list", "--json").stdout)["dependencies"]
    assert listed == [{"path": str(path), "packages": ["tinydep"], "lock": f"{directory}/hook.py.lock"}]
    lock(path)
    for name in ("list", "doctor"):
        assert "tinydep; versions: " in (found := command(name, code=None).stdout), found
        assert "gate.py.lock" in found


def test_a_project_without_headers_makes_no_directory(command: Command, home: Path) -> None:
    """Most people have no hook with packages of its own."""
    command.add_hook("ISOLATION = 'process'\ndef register(api): ...\n")
    command("list")
    assert not (home / ".agent/environments").exists()
    assert Trust().agent_home == str(home / ".agent")
