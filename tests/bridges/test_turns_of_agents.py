"""Checkpoints of the turns of other agents: through every bridge, without any hook file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_hooks import checkpoints
from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, EventsReported, Happening, PromptGiven
from agent_hooks.cli.opening import Opening
from agent_hooks.server.session import Opened
from agent_hooks.turn_notes import store_of
from agent_hooks.values.events import AgentEnd
from other_agent import OtherAgent
from running import Command

_HERE = Path(__file__).parent


def happenings(name: str, project: Path) -> list[Happening]:
    """Return a prompt, a call of the shell with its result, and an end, as an agent sends them."""
    bridge = open_bridge(name)
    payloads: dict[str, Any] = json.loads((_HERE / f"{name.replace('-', '_')}.json").read_text())
    found: dict[str, Happening] = {}
    for key, payload in payloads.items():
        event = bridge.decode_as(key.partition(":")[0], payload)
        each = replace(event, cwd=str(project), session_id="s", agent_id="main", session_file=None)
        match each:
            case PromptGiven():
                found.setdefault("prompt", replace(each, prompt=f"a prompt for {name}"))
            case CallAsked(tool_name="bash"):
                found.setdefault("call", replace(each, input={"command": "rm notes"}, tool_call_id="1"))
            case CallEnded(tool_name="bash"):
                found.setdefault("result", replace(each, input={"command": "rm notes"}, tool_call_id="1"))
            case EventsReported() if any(isinstance(one, AgentEnd) for one in each.events):
                found.setdefault("end", replace(each, events=(AgentEnd(),)))
    return [found[key] for key in ("prompt", "call", "result", "end")]


async def opened(name: str, happening: Happening, *, resident: bool) -> Opened:
    """Return the hooks of a project for an agent: there are none."""
    return await Opening(open_bridge(name), happening, os.environ, resident=resident).open()


@pytest.fixture
def repo(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a repository with an untracked file, in which the agent was started."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / "notes").write_text("of the person\n")
    monkeypatch.chdir(project)
    for variable in {open_bridge(name).project_variable for name in BRIDGES} - {""}:
        monkeypatch.setenv(variable, str(project))
    return project


@pytest.mark.anyio
@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize("name", BRIDGES)
async def test_a_turn_of_each_agent_has_a_checkpoint_before_its_first_change(
    repo: Path, name: str, resident: bool
) -> None:
    """It is there when the agent gets its answer; without a server, each event has a process of its own."""
    prompt, call, result, end = happenings(name, repo)
    one = await opened(name, prompt, resident=resident)

    async def answer(happening: Happening) -> None:
        nonlocal one
        if not resident:
            one = await opened(name, happening, resident=False)
        verdict = await one.bridging.answer(happening)
        assert (verdict.block, verdict.messages) == (None, ())

    await answer(prompt)
    assert await checkpoints.list(repo) == ()
    await answer(call)
    assert len(await checkpoints.list(repo)) == 1
    (repo / "notes").unlink()
    await answer(result)
    await answer(end)
    (repo / "later").write_text("by the person\n")
    [turn] = await checkpoints.turns(repo)
    assert (turn.number, turn.work.agent, turn.work.prompt) == (1, name, f"a prompt for {name}")
    assert turn.paths == ("notes",)
    await checkpoints.take_back(repo, await checkpoints.plan_undo(repo))
    assert (repo / "notes").read_text() == "of the person\n"
    assert (repo / "later").exists()


@pytest.mark.anyio
async def test_the_setting_turns_checkpoints_off(repo: Path) -> None:
    """No store is made."""
    home = Path(os.environ["HOME"]) / ".agent"
    home.mkdir()
    (home / "settings.json").write_text('{"checkpoints": {"enabled": false}}')
    for happening in happenings("codex", repo):
        one = await opened("codex", happening, resident=True)
        await one.bridging.answer(happening)
    assert not Path(store_of(str(repo))).exists()


def test_the_events_of_turns_are_installed_without_any_hook(command: Command) -> None:
    """The prompt begins a turn, and the stop ends it."""
    command("install", "claude-code")
    home = Path(os.environ["HOME"])
    written = [path.read_text() for top in (home, command.project) for path in top.glob(".claude/settings*.json")]
    assert [name for name in ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop") if name not in written[0]] == []


def test_the_installed_command_saves_the_files_before_the_call_and_undo_brings_them_back(
    agent: OtherAgent, command: Command
) -> None:
    """It goes through the server, as in the real agent."""
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    notes = command.project / "notes"
    notes.write_text("of the person\n")
    agent("UserPromptSubmit", prompt="clean up")
    call = {"tool_name": "Bash", "tool_input": {"command": "rm notes"}, "tool_use_id": "t1"}
    agent("PreToolUse", **call)
    notes.unlink()
    agent("PostToolUse", tool_response={"stdout": "", "stderr": ""}, **call)
    agent("Stop")
    listed = json.loads(command("checkpoints", "list", "--json").stdout)
    assert [(row["turn"], row["agent"], row["prompt"], row["files"]) for row in listed] == [
        (1, "claude-code", "clean up", ["notes"])
    ]
    assert "-of the person" in command("checkpoints", "show", "1").stdout
    refused = command("undo", code=1)
    assert "say --yes" in refused.stderr
    assert "claude-code  clean up: 1 file\n    notes\n" in refused.stdout
    assert not notes.exists()
    assert "took back 1 turn: 1 file written, 0 files deleted" in command("undo", "--yes").stdout
    assert notes.read_text() == "of the person\n"
    assert "brought the changes of an undo back" in command("checkpoints", "undo").stdout
    assert not notes.exists()
