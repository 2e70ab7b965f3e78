"""The templates of `agent-hooks new`, and the examples that travel with the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import agent_hooks
from agent_hooks import AddContext, AgentEnd, AgentStart, HookRunner, Replace, TextContent, ToolResult, load_hooks
from agent_hooks.cli import kit
from agent_hooks.errors import AgentHooksError
from agent_hooks.guards.base import GuardedCall
from agent_hooks.guards.shell import CommandSafetyGuard
from agent_hooks.testing import ScriptedUI, call_tool
from running import Command
from support import ROOT, call_of

TEMPLATES = ["ask", "budget", "context", "gate", "lint", "notify", "redact", "rewrite"]


@pytest.fixture
def path_with_ruff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the programs of the environment of the tests on the PATH; ruff is one of them."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


async def runner_of(name: str, cwd: Path, kind: str = "templates", ui: ScriptedUI | None = None) -> HookRunner:
    """Return the runner of one template or example."""
    loaded = await load_hooks([ROOT / "examples" / kind / f"{name}.py"], cwd=cwd)
    assert loaded.errors == []
    return HookRunner(loaded.hooks, cwd=cwd, ui=ui)


# ---- agent-hooks new


def test_each_template_becomes_a_hook_that_loads(command: Command) -> None:
    """The file has the name of the hook in its first line, and is approved."""
    command.trusted = False
    for template in TEMPLATES:
        assert "written and approved" in command("new", f"my-{template}", "--template", template).stdout
        path = command.project / ".agent" / "hooks" / f"my-{template}.py"
        assert path.read_text().startswith(f'"""my-{template}: ')
    listed = json.loads(command("list", "--json").stdout)
    assert listed["errors"] == []
    assert {Path(row["hook"]).stem for row in listed["handlers"] if row["handler"]} == {
        f"my-{each}" for each in TEMPLATES
    }


def test_an_unknown_template_is_an_error_that_lists_them(command: Command) -> None:
    """Nothing is written; `--list` says what each does."""
    said = command("new", "x", "--template", "zzz", code=2).stderr
    assert f"there is no template 'zzz'; the templates are: {', '.join(TEMPLATES)}" in said
    assert "(did you mean 'redact'?)" in command("new", "x", "--template", "redct", code=2).stderr
    assert not (command.project / ".agent" / "hooks").exists()
    listed = command("new", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == TEMPLATES
    assert listed[3] == "gate     leaves pushing commits to people."
    assert "give the hook a name" in command("new", code=2).stderr


# ---- agent-hooks examples


def test_an_example_is_listed_shown_and_added(command: Command) -> None:
    """A dash may stand for an underscore; the copy is approved and takes part, and a second one is refused."""
    command.trusted = False
    assert "lint_after_edit" in command("examples").stdout
    text = (ROOT / "examples" / "hooks" / "intercept_block.py").read_text()
    assert command("examples", "show", "intercept-block").stdout == text
    assert "written and approved" in command("examples", "add", "intercept-block").stdout
    assert (command.project / ".agent" / "hooks" / "intercept_block.py").read_text() == text
    assert "publishing is done by CI" in command("run", "--no-session", "@bash npm publish").stdout
    assert "exists already" in command("examples", "add", "intercept_block", code=1).stderr
    assert "did you mean 'webhook'?" in command("examples", "add", "webhok", code=1).stderr


def test_an_example_for_all_projects(command: Command, home: Path) -> None:
    """The agent home needs no approval."""
    command("examples", "add", "audit_log", "--user")
    assert (home / ".agent" / "hooks" / "audit_log.py").exists()


def test_an_installed_package_reads_its_own_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder inside of the package comes first; without any, the error says so."""
    package = tmp_path / "agent_hooks"
    package.mkdir()
    monkeypatch.setattr(kit, "files", lambda name: package)
    monkeypatch.setattr(agent_hooks, "__file__", str(package / "__init__.py"))
    with pytest.raises(AgentHooksError, match="this installation has no hooks"):
        kit.shipped("hooks")
    (package / "examples" / "hooks").mkdir(parents=True)
    (package / "examples" / "hooks" / "mine.py").write_text('"""Mine."""\n')
    assert kit.shipped("hooks") == {"mine": '"""Mine."""\n'}


@pytest.mark.slow
def test_the_wheel_has_the_examples_and_templates(tmp_path: Path) -> None:
    """Built as people build it."""
    line = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(line, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind in ("hooks", "templates"):
        for path in (ROOT / "examples" / kind).glob("*.py"):
            assert f"agent_hooks/examples/{kind}/{path.name}" in names


@pytest.mark.parametrize(
    "line",
    [
        "agent-hooks new gate --template redact",
        "agent-hooks examples add webhook",
        "python -m agent_hooks examples add webhook",
        "env agent-hooks examples add webhook",
        "agent-hooks undo",
    ],
)
def test_no_agent_adds_a_hook_by_its_shell(line: str) -> None:
    """It would run in the place of the person's own; reading the examples is no decision."""
    guard = CommandSafetyGuard()
    call = GuardedCall(tool_name="bash", input={"command": line}, cwd="/p", home="/h")
    assert [each.rule for each in guard.find(call)] == ["write-guard-settings"]
    for harmless in ("agent-hooks examples", "agent-hooks examples show webhook", "agent-hooks new --list"):
        assert guard.find(GuardedCall(tool_name="bash", input={"command": harmless}, cwd="/p", home="/h")) == []


def test_below_an_agent_no_hook_is_added(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark of an agent is enough."""
    monkeypatch.setenv("CLAUDECODE", "1")
    for line in (["new", "x"], ["examples", "add", "webhook"]):
        assert "is for a person" in command(*line, code=1).stderr
    assert command("examples", "show", "webhook").stdout


# ---- each of them at work


@pytest.mark.anyio
async def test_gate_ask_and_rewrite_judge_calls(tmp_path: Path) -> None:
    """The gate blocks, the question needs a person, and the rewriter changes the command."""
    gate = await runner_of("gate", tmp_path)
    for command in ("git push", "cd x && git push --force", 'bash -c "git push"', "P=push; git $P"):
        assert "pushing is for people" in (await call_tool(gate, "bash", {"command": command})).text
    for command in ("ls", "git fetch", "git stash push", "git commit -m push"):
        assert not (await call_tool(gate, "bash", {"command": command})).is_error
    ask = await runner_of("ask", tmp_path)
    output = await call_tool(ask, "bash", {"command": "bash -c 'docker push x'"})
    assert "no person is here" in output.text
    rewrite = await runner_of("rewrite", tmp_path)
    ran = [await call_tool(rewrite, "bash", {"command": each}) for each in ("npm install", "npm install left-pad")]
    assert [output.details["command"] for output in ran] == ["npm ci", "npm install left-pad"]


@pytest.mark.anyio
async def test_redact_hides_and_leaves_the_rest(tmp_path: Path) -> None:
    """A result without a secret is not replaced."""
    runner = await runner_of("redact", tmp_path)
    result = ToolResult(tool_name="bash", tool_call_id="1", input={}, content="paid by cus_123")
    answer = await runner.emit(result)
    assert isinstance(answer, Replace)
    assert answer == Replace(content=[TextContent("paid by cus_***")])
    assert await runner.emit(ToolResult(tool_name="bash", tool_call_id="1", input={}, content="nothing")) is None


@pytest.mark.anyio
@pytest.mark.usefixtures("path_with_ruff")
@pytest.mark.parametrize(("name", "kind"), [("lint", "templates"), ("lint_after_edit", "hooks")])
async def test_lint_gives_the_model_the_findings(tmp_path: Path, name: str, kind: str) -> None:
    """Of a file with findings, and only of that."""
    (tmp_path / "wrong.py").write_text("import os\n")
    (tmp_path / "right.py").write_text("print()\n")
    runner = await runner_of(name, tmp_path, kind)
    answers = {
        path: await runner.emit(
            ToolResult(tool_name="write", tool_call_id="1", input={"path": path}, content="wrote it", is_error=failed)
        )
        for path, failed in (("wrong.py", False), ("right.py", False), ("notes.txt", False), ("./wrong.py", True))
    }
    found = answers.pop("wrong.py")
    assert isinstance(found, Replace)
    assert "F401" in found.context[0].text
    assert set(answers.values()) == {None}


@pytest.mark.anyio
async def test_lint_after_edit_names_a_missing_linter_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit is no failure because of that."""
    monkeypatch.setenv("PATH", str(tmp_path))
    ui = ScriptedUI()
    runner = await runner_of("lint_after_edit", tmp_path, "hooks", ui)
    for _ in range(2):
        result = ToolResult(tool_name="edit", tool_call_id="1", input={"path": "x.py"}, content="changed")
        assert await runner.emit(result) is None
    assert [each.title for each in ui.asked] == ["ruff is not installed, so edits are not checked"]


@pytest.mark.anyio
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_context_tells_the_model_the_branch(tmp_path: Path) -> None:
    """Outside of a working tree nothing is added."""
    runner = await runner_of("context", tmp_path)
    assert await runner.emit(AgentStart(prompt="x")) is None
    subprocess.run(["git", "init", "-q", "-b", "trunk"], cwd=tmp_path, check=True)
    answer = await runner.emit(AgentStart(prompt="x"))
    assert isinstance(answer, AddContext)
    assert "trunk" in answer.text


@pytest.mark.anyio
async def test_notify_tells_of_long_work_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the hook is moved on in the place of a wait."""
    ui = ScriptedUI()
    runner = await runner_of("notify", tmp_path, ui=ui)
    clock = clock_of(runner, monkeypatch)
    await runner.emit(AgentStart(prompt="x"))
    clock(5.0)
    await runner.emit(AgentEnd(messages=()))
    assert ui.asked == []
    clock(60.0)
    await runner.emit(AgentEnd(messages=()))
    assert [each.title for each in ui.asked] == ["done after 65 s"]


@pytest.mark.anyio
async def test_budget_ends_a_run_after_its_calls_or_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new prompt has a new budget."""
    runner = await runner_of("budget", tmp_path)
    clock = clock_of(runner, monkeypatch)
    await runner.emit(AgentStart(prompt="x"))
    for _ in range(50):
        assert await runner.emit_tool_call(call_of()) is None
    assert "50 tool calls" in (await call_tool(runner, "bash", {"command": "ls"})).text
    await runner.emit(AgentStart(prompt="x"))
    assert await runner.emit_tool_call(call_of()) is None
    clock(31 * 60.0)
    assert "30 minutes" in (await call_tool(runner, "bash", {"command": "ls"})).text


def clock_of(runner: HookRunner, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that moves the clock of a hook on, by seconds."""
    now = [0.0]
    (hook,) = runner.hooks

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now[0]

    monkeypatch.setattr(hook.module, "time", Clock)

    def move(seconds: float) -> None:
        now[0] += seconds

    return move
