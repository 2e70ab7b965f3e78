"""What concerns no hook is judged without an event loop: neither asyncio nor anyio is even imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent_hooks.deadlines import LoopWanted, run
from agent_hooks.guards import BUILTIN
from agent_hooks.loader import load_hooks

HEAVY = ("asyncio", "anyio", "ssl", "trio", "click", "rich")
JUDGE = f"""
import json, os, sys
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import read_payload
from agent_hooks.cli.opening import Opening

def by_hand(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")

bridge = open_bridge("claude-code")
happenings = [read_payload(bridge, json.dumps(each).encode()) for each in json.load(sys.stdin)]
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
    """Return what a process of its own answers, in a project with these settings and no hooks."""
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
    """Return a call of Bash that is asked for."""
    return {**PAYLOADS["PreToolUse:Bash"], "tool_input": {"command": command}}


def test_a_bare_project_needs_no_event_loop(tmp_path: Path) -> None:
    """Every event of the agent passes."""
    answers = judged(tmp_path, *PAYLOADS.values(), settings=BARE)
    assert answers == [{}] * len(PAYLOADS)


def test_guards_and_redaction_need_no_event_loop(tmp_path: Path) -> None:
    """A call that is allowed, one that a guard denies, and a result with a secret in it."""
    after = PAYLOADS["PostToolUse:Bash"]
    after = {**after, "tool_response": {**after["tool_response"], "stdout": f"token: {TOKEN}\n"}}
    passed, denied, redacted = judged(tmp_path, call("ls"), call("rm -rf /"), after, settings={})
    assert passed == {}
    assert denied["hookSpecificOutput"]["permissionDecision"] == "deny"
    shown = json.dumps(redacted["hookSpecificOutput"])
    assert TOKEN not in shown
    assert "token: " in shown


def test_a_hook_is_loaded_only_where_an_event_loop_runs(tmp_path: Path) -> None:
    """Whoever drives by hand is asked for one before the file is imported, and `run` goes on in asyncio's."""
    (tmp_path / "hook.py").write_text("import asyncio\nasyncio.get_running_loop()\ndef register(api): ...\n")
    loading = load_hooks([tmp_path / "hook.py"], cwd=tmp_path)
    assert loading.send(None) is LoopWanted
    loading.close()
    assert run(load_hooks([tmp_path / "hook.py"], cwd=tmp_path)).errors == []
