"""An event that reaches no hook is judged without an event loop: neither asyncio nor anyio is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.concurrency.stepping import first_step, run
from agent_hooks.guards import BUILTIN
from agent_hooks.hooks.loader import load_hooks

HEAVY = ("asyncio", "anyio", "ssl", "trio", "click", "rich")
JUDGE = f"""
import json, os, sys
from agent_hooks.bridges import open_bridge
from agent_hooks.cli.opening import Opening

def by_hand(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")

bridge = open_bridge("claude-code")
happenings = [bridge.decode(each) for each in json.load(sys.stdin)]
opened = by_hand(Opening(bridge, happenings[0], os.environ).open())
for happening in happenings:
    print(bridge.encode(happening, by_hand(opened.bridging.answer(happening))).stdout, end="")
found = [name for name in {HEAVY!r} if name in sys.modules]
assert not found, found
"""
PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "claude_code.json").read_text())
TOKEN = "ghp_" + "a1B2" * 9
BARE = {"redaction": {"enabled": False}, "guards": {"disabled": list(BUILTIN)}}


def judged(folder: Path, *payloads: dict[str, Any], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers of a process for these events only, in a project with these settings and no hooks."""
    (folder / ".agent").mkdir()
    (folder / ".agent" / "settings.json").write_text(json.dumps(settings))
    said = json.dumps([{**payload, "cwd": str(folder)} for payload in payloads])
    done = subprocess.run(
        [sys.executable, "-P", "-c", JUDGE],
        input=said.encode(),
        capture_output=True,
        cwd=folder,
        env={"HOME": str(folder), "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def call(command: str) -> dict[str, Any]:
    """Return a tool call of Bash."""
    return {**PAYLOADS["PreToolUse:Bash"], "tool_input": {"command": command}}


def test_a_bare_project_needs_no_event_loop(tmp_path: Path) -> None:
    """Each event of the agent passes."""
    answers = judged(tmp_path, *PAYLOADS.values(), settings=BARE)
    assert answers == [{}] * len(PAYLOADS)


def test_guards_and_redaction_need_no_event_loop(tmp_path: Path) -> None:
    """Tested with an allowed call, a denied call, and a result with a secret."""
    after = PAYLOADS["PostToolUse:Bash"]
    after = {**after, "tool_response": {**after["tool_response"], "stdout": f"token: {TOKEN}\n"}}
    passed, denied, redacted = judged(tmp_path, call("ls"), call("rm -rf /"), after, settings={})
    assert passed == {}
    assert denied["hookSpecificOutput"]["permissionDecision"] == "deny"
    shown = json.dumps(redacted["hookSpecificOutput"])
    assert TOKEN not in shown
    assert "token: " in shown


def test_a_hook_is_loaded_only_where_an_event_loop_runs(tmp_path: Path) -> None:
    """The first step stops before the file is imported, and `run` continues in the event loop of asyncio."""
    (tmp_path / "hook.py").write_text("import asyncio\nasyncio.get_running_loop()\ndef register(api): ...\n")
    loading = load_hooks([tmp_path / "hook.py"], cwd=tmp_path)
    assert first_step(loading) is None
    loading.close()
    assert run(load_hooks([tmp_path / "hook.py"], cwd=tmp_path)).errors == []


@pytest.mark.parametrize("hook", [False, True])
def test_the_command_imports_what_one_event_needs(hook: bool, tmp_path: Path) -> None:
    """It imports no command line, and an event loop only for a hook, whose open files are complete at the end."""
    kept = tmp_path / "kept"
    source = f"file = open({str(kept)!r}, 'w')\nasync def call(event, ctx): file.write(event.input['command'])\n"
    (tmp_path / "hook.py").write_text(f"{source}def register(api): api.on('tool_call', call)\n")
    (tmp_path / ".agent").mkdir()
    # Records import the redaction, because they hold no secrets.
    settings = {**BARE, "records": {"enabled": False}, "hooks": ["../hook.py"] if hook else []}
    (tmp_path / ".agent" / "settings.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-P", "-m", "agent_hooks", "bridge", "claude-code", "PreToolUse"],
        input=json.dumps({**call("ls"), "cwd": str(tmp_path)}).encode(),
        capture_output=True,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "agent_hooks.bridges.driver" in imported
    assert imported & {"asyncio", "anyio", "click", "pathlib", "rich", "yaml", "agent_hooks.redaction"} == (
        {"asyncio"} if hook else set()
    )
    assert not hook or kept.read_text() == "ls"


@pytest.mark.parametrize(
    "args", [["nobody", "PreToolUse"], ["claude-code", "--wrong"], ["claude-code", "Stop", "more"], []]
)
def test_wrong_arguments_are_told_by_the_command_line(args: list[str], tmp_path: Path) -> None:
    """Only correct arguments take the fast path to an event."""
    done = subprocess.run(
        [sys.executable, "-m", "agent_hooks", "bridge", *args], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: ")
