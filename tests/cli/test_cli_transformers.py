"""The file of transformers, in our host, in bridges, and in the commands that report its mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from other_agent import OtherAgent
from running import Command

CALL = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}


def wrong_indent(path: Path) -> None:
    """Write a text that is no YAML."""
    path.write_text("version: 1\ntools:\n  bash:\n    enabled: true\n   find: {}\n")


def not_utf_8(path: Path) -> None:
    """Write a byte that is no UTF-8."""
    path.write_bytes(b"version: 1 # \xff\n")


def directory(path: Path) -> None:
    """Make a directory in the place of the file."""
    path.mkdir()


def dangling_link(path: Path) -> None:
    """Make a link to a missing file."""
    path.symlink_to("nowhere")


def misspelled_value(path: Path) -> None:
    """Write a value that is neither true nor false."""
    path.write_text("version: 1\nenabled: fals\n")


def misspelled_key(path: Path) -> None:
    """Write an unknown key."""
    path.write_text("version: 1\ntool: {bash: {}}\n")


BROKEN = [wrong_indent, not_utf_8, directory, dangling_link, misspelled_value, misspelled_key]


@pytest.fixture(autouse=True)
def _no_agent(no_agent_around: None) -> None:
    """The tests themselves may run inside an agent."""


@pytest.fixture
def path(home: Path) -> Path:
    """Give the place of the person's file."""
    (home / ".agent").mkdir(exist_ok=True)
    return home / ".agent" / "command_intercept.yaml"


def decision(answer: Any) -> tuple[str, str]:
    """Return the decision about a call, and its reason."""
    specific = answer["hookSpecificOutput"]
    return specific["permissionDecision"], specific["permissionDecisionReason"]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_file_that_cannot_be_read_denies_each_call(
    command: Command, path: Path, broken: Callable[[Path], None]
) -> None:
    """The host, and a process of one event, deny as with broken settings; `doctor`, `check` and `list` name the file."""
    broken(path)
    ran = command("run", "--no-session", "@bash echo it ran")
    assert "it ran\n" not in ran.stdout
    assert str(path) in ran.stdout
    assert "every call is blocked until it is mended" in ran.stderr
    said = command("bridge", "claude-code", stdin=json.dumps({**CALL, "cwd": str(command.project)}))
    verdict, reason = decision(json.loads(said.stdout))
    assert verdict == "deny"
    assert str(path) in reason
    for args in (("check", str(path)), ("list",), ("doctor", "--json")):
        done = command(*args, code=1)
        text = done.stdout + done.stderr
        assert "command_intercept.yaml" in text
        assert "every call is blocked until it is mended" in text


@pytest.mark.parametrize("broken", [wrong_indent, dangling_link])
def test_the_server_denies_until_the_file_is_mended(
    agent: OtherAgent, path: Path, broken: Callable[[Path], None]
) -> None:
    """The server reads the file again when it changes, in either direction."""
    assert agent() == {}
    assert agent.server() is not None
    broken(path)
    verdict, reason = decision(agent())
    assert verdict == "deny"
    assert str(path) in reason
    path.unlink()
    path.write_text("version: 1\n")
    assert agent().keys() <= {"systemMessage"}


@pytest.mark.parametrize("name", ["Glob", "find", "'ls, Glob'"])
def test_both_names_of_a_tool_count_in_the_host_and_in_bridges(command: Command, path: Path, name: str) -> None:
    """A person needs one section for a tool that agents name differently."""
    path.write_text(
        f"version: 1\ntools:\n  {name}:\n    transformers:\n"
        "      - {name: default_args, config: {append: {pattern: .py}}}\n"
    )
    (command.project / "a.py").touch()
    ran = command("run", "--no-session", "@find a")
    assert "a.py" in ran.stdout
    assert "default_args changed this call of find" in ran.stdout
    call = {**CALL, "cwd": str(command.project), "tool_name": "Glob", "tool_input": {"pattern": "a"}}
    said = json.loads(command("bridge", "claude-code", stdin=json.dumps(call)).stdout)
    assert said["hookSpecificOutput"]["updatedInput"] == {"pattern": "a.py"}
