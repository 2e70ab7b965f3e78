"""Each example hook does what its first lines say, driven by the real command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent_hooks.host.tools import builtin_tools
from agent_hooks.testing import MakeRunner, ScriptedUI, call_tool
from running import Command

EXAMPLES = Path(__file__).parent.parent / "examples"
HOOKS = EXAMPLES / "hooks"


GUARDS = ["builtin:command-safety-guard", "builtin:security-audit"]


def without_guards(command: Command, guards: list[str]) -> None:
    """Switch guards off, for a hook that judges the same to be asked."""
    path = command.project / ".agent" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"guards": {"disabled": guards}}))


def example(name: str) -> str:
    """Return the path of an example hook."""
    return str(HOOKS / name)


@pytest.mark.parametrize(
    "call",
    [
        "rm -rf build",
        "rm -f -r build",
        "rm build -rf",
        "true; rm --force --recursive build",
        "sudo ls",
    ],
)
def test_the_permission_gate_blocks_where_nobody_can_be_asked(command: Command, call: str) -> None:
    """In print mode nobody is there."""
    (command.project / "build").mkdir()
    done = command("run", "--hook", example("permission_gate.py"), f"@bash {call}")
    assert "nobody could be asked (asked by " in done.stdout
    assert (command.project / "build").is_dir()


def test_what_is_never_right_a_guard_stops_before_the_gate_asks(command: Command) -> None:
    """The refusal says which guard it was; where that guard is off, the gate asks."""
    (command.project / "build").mkdir()
    for off, says in (([], "(builtin:command-safety-guard (world-writable))"), (GUARDS, "nobody could be asked")):
        without_guards(command, off)
        done = command("run", "--hook", example("permission_gate.py"), "@bash chmod 0777 build")
        assert says in done.stdout
    assert (command.project / "build").stat().st_mode & 0o777 != 0o777


def test_the_permission_gate_lets_harmless_commands_pass(command: Command) -> None:
    """No question, no block."""
    done = command("run", "--hook", example("permission_gate.py"), "@bash touch a && rm a && echo fine")
    assert "   fine" in done.stdout


@pytest.mark.anyio
@pytest.mark.parametrize("yes", [True, False])
async def test_the_permission_gate_asks_the_person(project: Path, hook_runner: MakeRunner, yes: bool) -> None:
    """Yes runs the command, no does not; the question shows it."""
    (project / "build").mkdir()
    ui = ScriptedUI(yes)
    runner = await hook_runner("examples/hooks/permission_gate.py", ui=ui, cwd=project)
    bash = builtin_tools(cwd=str(project))[0]
    output = await call_tool(runner, "bash", {"command": "rm -rf build"}, bash)
    assert (project / "build").exists() is not yes
    assert output.is_error is not yes
    assert ui.asked[0].title == "Run a recursive rm?"
    assert "rm -rf build" in ui.asked[0].more
    assert yes or "the user said no" in output.text


@pytest.mark.parametrize(
    "path", [".env", "a/../.env", "./.git/config", "node_modules/x/y.js", "link/config", "sub/.env"]
)
def test_protected_paths_keeps_write_and_edit_out(command: Command, path: str) -> None:
    """By whatever spelling, and through symlinks."""
    without_guards(command, GUARDS)
    (command.project / ".git").mkdir()
    (command.project / "link").symlink_to(".git")
    call = json.dumps({"path": path, "content": "x"})
    done = command("run", "--hook", example("protected_paths.py"), f"@write {call}\n@edit {call}")
    assert f"{path} is protected" in done.stdout
    assert not list((command.project / ".git").iterdir())


def test_protected_paths_leaves_other_files_alone(command: Command) -> None:
    """A name that only looks alike is no match, and reading is allowed."""
    without_guards(command, GUARDS)
    (command.project / ".env").write_text("A=1")
    call = json.dumps({"path": "x.env.example", "content": "x"})
    done = command("run", "--hook", example("protected_paths.py"), f"@write {call}\n@read .env")
    assert "protected" not in done.stdout
    assert "A=1" in done.stdout


def test_redact_secrets_hides_keys_before_the_model_sees_them(command: Command) -> None:
    """In the answer, in the session file, in the JSON events."""
    secrets = ["sk-abcdefghijklmnopqrstuvwxyz", "ghp_0123456789abcdefghijABCDEFGHIJ", "hunter2hunter2hunter2"]
    (command.project / "config").write_text(f"{secrets[0]}\n{secrets[1]}\npassword = '{secrets[2]}'\nplain\n")
    done = command("run", "--hook", example("redact_secrets.py"), "--json", "@read config\n@bash cat config")
    [session] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    for text in (done.stdout, session.read_text()):
        assert text.count("sk-***") >= 2
        assert "plain" in text
        assert not any(secret in text for secret in secrets)


def test_audit_log_has_every_call_run_or_blocked(command: Command) -> None:
    """One JSON line each, with reason, error and duration."""
    gate = example("permission_gate.py")
    command("run", "--hook", example("audit_log.py"), "--hook", gate, "@bash sudo x\n@bash echo hi\n@bash exit 3")
    lines = (command.project / ".agent" / "audit.jsonl").read_text().splitlines()
    entries = {entry["input"]["command"]: entry for entry in map(json.loads, lines)}
    assert entries["sudo x"]["blocked"] == "Run sudo?"
    assert entries["sudo x"]["ms"] is None
    assert (entries["echo hi"]["blocked"], entries["echo hi"]["error"]) == (None, None)
    assert entries["echo hi"]["ms"] > 0
    assert "[exit code 3]" in entries["exit 3"]["error"]


@pytest.mark.parametrize("path", sorted(HOOKS.glob("*.py")), ids=lambda path: path.name)
def test_what_an_example_says_to_try_works(command: Command, path: Path) -> None:
    """The line after "Try it:" runs, from a checkout, and its hook takes part."""
    match = re.search(r"^Try it:  agent-hooks (.*)$", path.read_text(), re.MULTILINE)
    assert match, f"{path.name} says how to try it"
    (command.project / "examples").symlink_to(EXAMPLES)
    line = f"{sys.executable} -m agent_hooks {match[1]}"
    done = subprocess.run(["bash", "-c", line], cwd=command.project, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shows = {"permission_gate.py": "nobody", "protected_paths.py": "protected", "redact_secrets.py": "sk-***"}
    assert shows.get(path.name, '"tool": "ls"') in done.stdout


def test_every_example_is_driven_here() -> None:
    """A new example comes with its test."""
    text = Path(__file__).read_text()
    assert [path.name for path in HOOKS.glob("*.py") if f'example("{path.name}")' not in text] == []


def test_the_demo_shows_a_hook_stopping_a_real_call(tmp_path: Path) -> None:
    """`make demo` runs this file."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "• bash rm -rf build → blocked: deleting needs a person (.agent/hooks/no_rm.py)" in done.stderr
    assert "• bash ls build → ok" in done.stderr
    assert done.stdout.endswith("build/release.tar is still there: the hook stopped the rm.\n")
