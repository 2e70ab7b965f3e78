"""No Python file of a project stands in for a module of ours, in any way to start a command there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostile.strangers import Stranger

MODULES = (
    *("click", "msgspec", "anyio", "yaml", "regex", "sitecustomize", "usercustomize", "pathspec", "prompt_toolkit"),
    *(
        "rich/__init__",
        "pygments/__init__",
        "tree_sitter/__init__",
        "jsonschema_rs/__init__",
        "conftest",
        "json/__init__",
    ),
    *("ast", "asyncio/__init__", "difflib", "tempfile", "readline", "_winapi", "org", "opentelemetry/__init__", "main"),
    *("watchfiles/__init__", "uvloop/__init__", "trio/__init__", "typing_extensions", "dotenv/__init__", "secrets"),
)
COMMANDS = (("list",), ("run", "@bash true"), ("guard", "explain", "ls"), ("doctor",), ("checkpoints", "list"))
ENTRY_POINTS = "[console_scripts]\nx = evil:x\n[{}]\nevil = click:evil\n"
GROUPS = ("pytest11", "anyio.backends", "pydantic", "opentelemetry_context", "agent_hooks", "distutils.commands")


@pytest.fixture
def shadowed(stranger: Stranger) -> Stranger:
    """Return a project with a module for each name, a distribution with entry points, and a `.env`."""
    for module in MODULES:
        stranger.python(module.replace("/", "."), f"{module}.py")
    information = stranger.top / "evil-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("\n".join(map(ENTRY_POINTS.format, GROUPS)))
    (stranger.top / "evil.pth").write_text(f"import sys; {stranger.python('pth')}")
    (stranger.top / ".env").write_text(f"PYTHONPATH={stranger.top}\nAGENT_HOME={stranger.top}\n")
    (stranger.top / "pyvenv.cfg").write_text(f"home = {stranger.top}\n")
    (stranger.top / "__pycache__").mkdir()
    stranger.python("startup", "startup.py")
    return stranger


@pytest.mark.parametrize("start", [["agent-hooks"], [sys.executable, "-m", "agent_hooks"]], ids=["script", "module"])
def test_modules_beside_the_person_are_not_imported(shadowed: Stranger, start: list[str]) -> None:
    """The current directory is not on the path, and no entry point, `.env` or `.pth` there counts."""
    for line in COMMANDS:
        done = shadowed.program([*start, *line])
        assert done.returncode in (0, 1), done.stderr
        assert "Error" not in done.stderr, done.stderr
    assert shadowed.ran == []


@pytest.mark.parametrize("option", ["-magent_hooks", "-Bmagent_hooks"])
def test_a_module_option_in_one_word_is_known_too(shadowed: Stranger, option: str) -> None:
    """Python takes both forms."""
    assert shadowed.program([sys.executable, option, "--version"]).returncode == 0
    assert shadowed.ran == []


def test_a_program_of_a_person_keeps_its_path(stranger: Stranger, tmp_path: Path) -> None:
    """Only `python -m agent_hooks` loses the current directory, not a module that imports this package."""
    (stranger.top / "mine.py").write_text("import agent_hooks, beside\nprint(beside.word)\n")
    (stranger.top / "beside.py").write_text("word = 'found'\n")
    assert stranger.program([sys.executable, "-m", "mine"]).stdout == "found\n"


def test_programs_first_on_the_path_do_not_run(stranger: Stranger) -> None:
    """A project's directory, a relative and an empty entry may come first on the PATH."""
    stranger.program(["/usr/bin/git", "init", "-q"])
    for name in ("git", "bash", "sh", "rg", "claude", "uv", "python", "python3", "agent-hooks", "tmux"):
        stranger.shell(f"bin-{name}", f"bin/{name}")
        stranger.shell(f"top-{name}", name)
    first = {"PATH": f":.:bin:{stranger.top}/bin:{stranger.environment['PATH']}"}
    (agent_hooks,) = [
        path
        for path in [f"{directory}/agent-hooks" for directory in stranger.environment["PATH"].split(":")[:1]]
        if Path(path).is_file()
    ]
    for line in (
        *COMMANDS,
        ("run", '@find {"pattern": "*"}'),
        ("install", "claude-code", "--dry-run"),
        ("install", "claude-code", "--project"),
        ("doctor", "claude-code"),
    ):
        stranger.program([agent_hooks, *line], env=first)
    assert stranger.ran == []
    assert "is a program of this project" in stranger.program([agent_hooks, "doctor"], env=first).stdout
