"""A generated file that is cut, and an entry that starts with too little, let no call through."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.server.stub import config_of
from other_agent import BRIDGE, CALL, OtherAgent

GATE = """
def register(api):
    api.on("tool_call", lambda event, ctx: {"block": True, "reason": "not this one"})
"""
SHELLS = [shell for shell in ("dash", "bash", "fish", "zsh") if shutil.which(shell)]


class Entry:
    """The installed entry of a gate that blocks each call: `entry(prefix, shell)` runs it once."""

    def __init__(self, agent: OtherAgent) -> None:
        self._agent = agent
        agent.command.add_hook(GATE)
        agent.command("install", "claude-code")
        agent.write_stub()
        self.settings = agent.command.project / ".claude" / "settings.local.json"
        self.line = json.loads(self.settings.read_text())["hooks"]["PreToolUse"][0]["hooks"][0]["command"]

    def __call__(self, prefix: str = "", shell: str = "sh", end: str = "") -> subprocess.CompletedProcess[str]:
        """Run the line between `prefix` and `end` in a shell."""
        return subprocess.run(
            [shell, "-c", f"{prefix}{self.line}{end}"],
            input=json.dumps({**CALL, "session_id": "s"}),
            capture_output=True,
            text=True,
            env=self._agent.environment,
            cwd=self._agent.command.project,
            timeout=60,
            check=False,
        )


@pytest.fixture
def entry(agent: OtherAgent) -> Entry:
    """Return the installed entry."""
    return Entry(agent)


def denies(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether the agent takes this end of an entry for a denial."""
    if done.returncode == 2:
        return bool(done.stderr)
    return done.returncode == 0 and '"permissionDecision": "deny"' in done.stdout


def test_a_cut_file_denies_wherever_it_is_cut(agent: OtherAgent, entry: Entry) -> None:
    """A full disk or a power cut left a part of it, in the head, in the commented program, or nothing at all."""
    path = Path(agent.stub)
    path.with_suffix(".pyc").unlink()
    whole = path.read_bytes()
    assert "not this one" in entry().stdout
    first = whole.index(b"\n") + 1
    for size in (0, 1, 11, first - 2, first - 1, first, first + 20, len(whole) // 3, len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:size])
        done = entry()
        assert denies(done), (size, done)
        assert "not this one" not in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_an_empty_file_denies_in_each_shell(shell: str, agent: OtherAgent, entry: Entry) -> None:
    """Agents run the line in the shell of the user too."""
    assert "not this one" in entry(shell=shell).stdout
    Path(agent.stub).write_bytes(b"")
    assert denies(entry(shell=shell))


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "0<&- 1>&- 2>&-"])
def test_closed_descriptors_deny_while_no_server_runs_and_while_one_runs(
    closed: str, agent: OtherAgent, entry: Entry
) -> None:
    """No file that the client opens takes the number of stdout, where the answer would be lost."""
    for _ in range(2):
        done = entry(f"exec {closed}; ")
        assert done.returncode == 2 or denies(done), done
        # The agent cannot read a denial from a descriptor that is closed, but it gets the exit code.
        assert done.returncode == 2 or "1>&-" not in closed
    assert "not this one" in entry().stdout


def test_any_limit_of_descriptors_denies(agent: OtherAgent, entry: Entry) -> None:
    """Below some limit not even Python starts."""
    for number in (3, 5, 7, 9):
        done = entry(f"ulimit -n {number}; ")
        assert denies(done), (number, done)


@pytest.mark.parametrize("limit", ["-f 0", "-t 0", "-v 20000"])
def test_other_limits_deny(limit: str, agent: OtherAgent, entry: Entry) -> None:
    """The shell itself is within the limit too, so the line may end by a signal."""
    done = entry(f"ulimit {limit}; ")
    assert done.returncode < 0 or done.returncode > 128 or denies(done), done


def test_after_the_package_was_removed_a_denial_names_the_lines_to_remove(agent: OtherAgent, entry: Entry) -> None:
    """The command that could remove them is gone too."""
    gone = "/nowhere/agent_hooks/__main__.py"
    agent.write_stub(run=["-I", gone], serve=["-I", gone])
    done = entry()
    reason = json.loads(done.stdout)["hookSpecificOutput"]["permissionDecisionReason"]
    lines = entry.settings.read_text().splitlines()
    (place,) = [number for number, line in enumerate(lines, 1) if " PreToolUse ||" in line]
    assert f"{gone} is gone" in reason
    assert f"{entry.settings}, lines " in reason
    assert f" {place}," in reason or f" {place} " in reason or reason.endswith(f" {place}")


def test_each_entry_of_each_agent_is_read_back(tmp_path: Path) -> None:
    """The command is found in the line of an entry, whatever surrounds it."""
    for name in BRIDGES:
        bridge = open_bridge(name)
        if bridge.plugin:
            continue
        command = [sys.executable, "-I", "-S", f"/home/a b/.agent/bridges/agent-hooks-{name}.py"]
        events = {row.name for row in bridge.describe()}
        settings = bridge.install({}, command, events)
        found = {entry.event: entry.command for entry in bridge.installed(settings)}
        assert found == {event: (*command, event) for event in events}


def test_a_payload_that_never_ends_is_refused(agent: OtherAgent, entry: Entry) -> None:
    """Neither endless data nor an open pipe holds the agent up."""
    assert "larger than 32 MiB" in entry("yes | { ", end="; }").stdout
    events = {"": (1.0, ""), "PreToolUse": (1.0, config_of(BRIDGE)["events"]["PreToolUse"][1])}
    agent.write_stub(events=events)
    # The shell itself holds the writing end open.
    assert "the payload has no end" in entry("mkfifo open; exec 0<>open; ").stdout


def test_what_surrounds_the_json_of_a_payload_does_not_matter(agent: OtherAgent) -> None:
    """An agent on Windows begins with a byte-order mark, and others end with a newline or NUL."""
    agent.command.add_hook(GATE)

    def answers(text: str) -> tuple[str, str]:
        """Return the server's answer, and the answer from a process for one event."""
        one = agent.command("bridge", "claude-code", "PreToolUse", stdin=text, code=None)
        return agent.run("PreToolUse", text).stdout.decode(), one.stdout

    call = {**CALL, "session_id": "s"}
    for text in (
        f"\ufeff{json.dumps(call)}",
        json.dumps(call, indent=2).replace("\n", "\r\n"),
        f"{json.dumps(call)}\n",
        f"\ufeff{json.dumps(call)}\r\n\0",
    ):
        for answer in answers(text):
            assert "not this one" in answer, text
    for text in ("\ufeff", "\0", f"\0{json.dumps(call)}", f"{json.dumps(call)}\ufeff"):
        for answer in answers(text):
            assert '"deny"' in answer, text
            assert "not this one" not in answer, text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"cwd": "/x" * 20_000}, "working directory has 40000 characters"),
        ({"session_id": "s" * 100_000}, "session id has 100000 characters"),
        ({"tool_use_id": "i" * 100_000}, "call id has 100000 characters"),
        ({"tool_name": ""}, "the call names no tool"),
        ({"tool_name": " "}, "the call names no tool"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused_by_each_bridge(fields: dict[str, str], text: str) -> None:
    """A directory with thousands of parts would hold up the events of all sessions."""
    with pytest.raises(BridgeError, match=text):
        BRIDGE.decode_as("PreToolUse", {**CALL, "session_id": "s", **fields})
