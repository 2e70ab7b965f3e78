"""Hooks that are left out: for one run, or until they are enabled again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_hooks.cli.disabling import disable, enable
from agent_hooks.cli.setup import find_sources
from agent_hooks.errors import AgentHooksError
from agent_hooks.guards.base import GuardedCall
from agent_hooks.guards.shell import CommandSafetyGuard
from agent_hooks.hooks.choosing import chosen
from agent_hooks.settings import load_settings
from other_agent import OtherAgent
from running import Command, RpcClient

GATE = """
from agent_hooks import Block

def register(api):
    @api.on("tool_call", tool="bash")
    async def gate(event, ctx):
        return Block("no shell")
"""


def own_hook(home: Path, name: str = "gate", text: str = GATE) -> Path:
    """Write a hook of the person, for every project."""
    path = home / ".agent" / "hooks" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_one_run_goes_without_a_hook(command: Command, home: Path) -> None:
    """By its name, its file's name or its path; the next run has it again."""
    path = own_hook(home)
    for name in ("gate", "gate.py", str(path), "~/.agent/hooks/gate.py"):
        assert "no shell" not in command("run", "--no-session", "--without", name, "@bash true").stdout
    assert "no shell" in command("run", "--no-session", "@bash true").stdout
    listed = command("list", "--without", "gate").stdout
    assert listed.startswith(f"left out: {path} (--without)\n")


def test_a_replay_goes_without_a_hook(command: Command, home: Path) -> None:
    """The calls that only this hook would have stopped pass."""
    own_hook(home)
    (command.project / "session.jsonl").write_text(
        '{"type":"session","version":1,"id":"1","timestamp":"2026-01-01T00:00:00Z","cwd":"/x"}\n'
        '{"type":"message","timestamp":"2026-01-01T00:00:00Z","message":{"role":"assistant","timestamp":1,'
        '"provider":"puppet","model":"puppet","content":[{"type":"toolCall","id":"1","name":"bash",'
        '"arguments":{"command":"true"}}]}}\n'
    )
    assert "no shell" in command("replay", "session.jsonl").stdout
    assert "no shell" not in command("replay", "--without", "gate", "session.jsonl").stdout


def test_a_disabled_hook_counts_nowhere(command: Command, home: Path) -> None:
    """In a run, in another agent, in the lists; the settings keep their other keys and their form."""
    path = own_hook(home)
    settings = home / ".agent" / "settings.json"
    settings.write_text('{\n    "hookTimeout": 1000\n}\n')
    payload = {
        "session_id": "s",
        "transcript_path": "/x",
        "cwd": str(command.project),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "true"},
        "tool_use_id": "1",
    }
    assert "no shell" in command("bridge", "claude-code", stdin=json.dumps(payload)).stdout
    assert "agent-hooks enable gate" in command("disable", "gate").stdout
    assert json.loads(settings.read_text()) == {"hookTimeout": 1000, "disabledHooks": [str(path)]}
    assert '    "hookTimeout": 1000' in settings.read_text()
    assert json.loads(command("bridge", "claude-code", stdin=json.dumps(payload)).stdout) == {}
    assert "no shell" not in command("run", "--no-session", "@bash true").stdout
    assert f"disabled: {path}; to enable it: agent-hooks enable gate" in command("list").stdout
    assert json.loads(command("list", "--json").stdout)["disabled"] == [str(path)]
    assert "disabled, so it counts nowhere" in command("doctor").stdout
    assert "no shell" in command("run", "--no-session", "--hook", str(path), "@bash true").stdout
    assert "disabled already" in command("disable", "gate", code=1).stderr
    command("enable", "gate")
    assert json.loads(settings.read_text()) == {"hookTimeout": 1000}
    assert "no shell" in command("run", "--no-session", "@bash true").stdout
    assert "is not disabled" in command("enable", "gate", code=1).stderr


def test_a_hook_that_cannot_be_loaded_blocks_nothing_once_it_is_disabled(command: Command, home: Path) -> None:
    """This is the way out where a hook of another person is broken."""
    own_hook(home, "broken", "1/0")
    assert "could not be loaded" in command("run", "--no-session", "@bash true").stdout
    command("disable", "broken")
    done = command("run", "--no-session", "@bash echo fine")
    assert "fine" in done.stdout
    assert "ZeroDivisionError" not in done.stderr


def test_symlinks_to_a_disabled_hook_and_packages_are_left_out_too(project: Path, home: Path) -> None:
    """A hook that is found twice does not come in by its other path."""
    path = own_hook(home)
    (path.parent / "other.py").symlink_to(path)
    package = path.parent / "big"
    package.mkdir()
    (package / "__init__.py").write_text(GATE)
    disable("gate", str(project))
    disable("big", str(project))
    found = find_sources(str(project), ()).hooks
    assert found.paths == []
    assert set(found.disabled) == {str(path), str(path.parent / "other.py"), str(package)}
    path.unlink()
    assert enable("gate", str(project)) == str(path)
    assert load_settings(cwd=project).disabled_hooks == (str(package),)


def test_a_run_goes_on_without_a_hook_that_is_disabled_meanwhile(command: Command, home: Path) -> None:
    """The next turn has other hooks, in the same session."""
    own_hook(home)
    rpc = command.rpc("--no-session")
    assert "no shell" in reason(rpc)
    disable("gate", str(command.project))
    assert reason(rpc) == ""
    enable("gate", str(command.project))
    assert "no shell" in reason(rpc)
    rpc.end()


def reason(rpc: RpcClient) -> str:
    """Return the reason for which a call was blocked, an empty text for one that ran."""
    rpc.send("prompt", message="@bash true")
    result = rpc.expect("after_tool_call")
    rpc.expect("run_end")
    return str(result.get("blockReason", ""))


def test_a_server_of_another_agent_notices_a_disabled_hook(agent: OtherAgent, home: Path) -> None:
    """The next event is judged without it, by the same process."""
    own_hook(home)
    assert "no shell" in str(agent())
    server = agent.server()
    assert server is not None
    disable("gate", str(agent.command.project))
    assert "no shell" not in str(agent())
    enable("gate", str(agent.command.project))
    assert "no shell" in str(agent())
    again = agent.server()
    assert again is not None
    assert again["pid"] == server["pid"]


def test_a_wrong_name_is_an_error_with_the_nearest_names(command: Command, home: Path) -> None:
    """Nothing is changed, and no agent runs."""
    own_hook(home, "gate")
    own_hook(home, "gates")
    for line in (("run", "--no-session", "--without", "gat", "hello"), ("disable", "gat"), ("enable", "gat")):
        assert "there is no hook 'gat'; did you mean 'gate' or 'gates'?" in command(*line, code=1).stderr
    assert not (home / ".agent" / "settings.json").exists()


def test_a_name_of_several_hooks_asks_for_the_path() -> None:
    """A path says which, and a name of nothing lists the hooks that are there."""
    paths = ["/a/gate.py", "/b/gate.py", "/b/lint.py"]
    with pytest.raises(AgentHooksError, match=r"'gate' is the name of 2 hooks; say which: /a/gate\.py, /b/gate\.py"):
        chosen("gate", paths, cwd="/")
    assert chosen("b/gate.py", paths, cwd="/") == "/b/gate.py"
    with pytest.raises(AgentHooksError, match="there is no hook 'xyz'; the hooks here are: gate, lint"):
        chosen("xyz", paths, cwd="/")
    with pytest.raises(AgentHooksError, match="there are no hooks here"):
        chosen("xyz", [], cwd="/")


@pytest.mark.parametrize(
    "line",
    [
        "agent-hooks disable gate",
        "agent-hooks enable gate",
        "python -m agent_hooks disable gate",
        "agent-hooks run --without gate '@bash true'",
        "agent-hooks run --without=gate '@bash true'",
    ],
)
def test_no_agent_leaves_a_hook_out_by_its_shell(line: str) -> None:
    """The guards block the command; a listing without a hook changes nothing, and is stopped as well."""
    call = GuardedCall(tool_name="bash", input={"command": line}, cwd="/p", home="/h")
    found = CommandSafetyGuard().find(call)
    assert [each.rule for each in found] == ["write-guard-settings"]


def test_below_an_agent_no_hook_is_left_out(command: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark of an agent is enough."""
    own_hook(home)
    monkeypatch.setenv("CLAUDECODE", "1")
    for line in (("disable", "gate"), ("enable", "gate"), ("run", "--without", "gate", "@bash true")):
        assert "is for a person" in command(*line, code=1).stderr


def test_a_project_cannot_disable_a_hook_of_the_person(command: Command, home: Path) -> None:
    """A warning names the key."""
    path = own_hook(home)
    settings = command.project / ".agent" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"disabledHooks": [str(path)]}))
    done = command("run", "--no-session", "@bash true")
    assert "no shell" in done.stdout
    assert "the key 'disabledHooks' counts only in your own settings" in done.stderr
