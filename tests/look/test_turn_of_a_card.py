"""The turn part of a card: the checkpoint, the files that the turn changed, and the command that brings them back."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.look.index.columns import CHANGED_FILES
from agent_hooks.look.view import View
from agent_sessions import put
from running import Command

LOSS = "@bash rm plan.md list.md\n@bash echo tidy"


@pytest.fixture
def repository(command: Command) -> Command:
    """Give a git repository with two files that no commit has."""
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    (command.project / "plan.md").write_text("the plan\n")
    (command.project / "list.md").write_text("a list\n")
    return command


@contextmanager
def shown(home: Path) -> Iterator[View]:
    """Give a view of the records below a home."""
    view = View(home / ".agent")
    try:
        view.refresh()
        yield view
    finally:
        view.close()


def turns(home: Path) -> list[dict[str, Any]]:
    """Return the turn parts of all cards."""
    with shown(home) as view:
        return [view.card(row)["turn"] for row in range(len(view.columns()))]


def event(agent: Command, name: str, **fields: Any) -> None:
    """Send an event of Claude Code, as it does: by a process."""
    payload = {"session_id": "s", "cwd": str(agent.project), "hook_event_name": name, **fields}
    agent("bridge", "claude-code", stdin=json.dumps(payload))


def call(agent: Command, id: str, command: str) -> None:
    """Run a command in a shell, with the events around it."""
    fields: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id}
    event(agent, "PreToolUse", **fields)
    subprocess.run(command, shell=True, cwd=agent.project, check=True)
    event(agent, "PostToolUse", **fields, tool_response={"stdout": "", "stderr": ""})


def test_the_card_has_the_files_of_the_turn_and_the_command_that_brings_them_back(
    repository: Command, home: Path
) -> None:
    """Each call of the turn has them, and the command does what the card says."""
    repository("run", LOSS)
    removed, after = turns(home)
    assert removed["files"] == ["list.md", "plan.md"]
    assert (after["files"], after["checkpoint"], after["bringBack"]) == tuple(
        removed[name] for name in ("files", "checkpoint", "bringBack")
    )
    listed = json.loads(repository("checkpoints", "list", "--json").stdout)
    assert removed["checkpoint"] in [each["name"] for each in listed]
    words = shlex.split(removed["bringBack"])
    assert words[:2] == ["agent-hooks", "undo"]
    repository(*words[1:], "--yes")
    assert (repository.project / "plan.md").read_text() == "the plan\n"


def test_each_turn_has_its_own_files(repository: Command, home: Path) -> None:
    """A turn of reads has none, and no command; a call of it does not get the files of the turn before."""
    repository("run", "@bash echo new > new.md")
    repository("run", "@bash ls\n@read plan.md")
    repository("run", LOSS)
    first, listed, read, removed, _ = turns(home)
    assert (first["files"], removed["files"]) == (["new.md"], ["list.md", "plan.md"])
    assert first["bringBack"] != removed["bringBack"]
    assert [(turn["files"], turn["bringBack"], turn["checkpoint"]) for turn in (listed, read)] == [([], None, None)] * 2
    with shown(home) as view:
        assert [bool(flags & CHANGED_FILES) for flags in view.columns().flags] == [True, False, False, True, False]
        assert view.summary()["files"] == 2


def test_a_call_before_the_first_change_of_its_turn_belongs_to_it_too(repository: Command, home: Path) -> None:
    """Its card has the files too, and says that it was not this call; only the removal counts."""
    repository("run", "@bash ls\n@bash rm plan.md")
    listed, removed = turns(home)
    assert listed == removed | {"mayBeIts": False}
    assert removed["mayBeIts"]
    with shown(home) as view:
        assert view.summary()["files"] == 1


def test_a_page_that_is_open_hears_of_the_files_at_the_end_of_the_turn(repository: Command, home: Path) -> None:
    """The call is there before: its flag changes, and the view reports its row."""
    with shown(home) as view:
        event(repository, "UserPromptSubmit", prompt="tidy up")
        call(repository, "c1", "ls")
        call(repository, "c2", "rm plan.md")
        assert list(view.refresh().calls) == [0, 1]
        assert view.summary()["files"] == 0
        event(repository, "Stop")
        assert list(view.refresh().calls) == [1]
        assert view.summary()["files"] == 1
        assert view.card(0)["turn"]["files"] == ["plan.md"]


def test_a_turn_that_was_broken_off_has_its_files_at_the_end_of_the_session(repository: Command, home: Path) -> None:
    """No `Stop` came."""
    event(repository, "UserPromptSubmit", prompt="tidy up")
    call(repository, "c1", "rm plan.md")
    event(repository, "SessionEnd", reason="other")
    (turn,) = turns(home)
    assert (turn["files"], turn["ended"]) == (["plan.md"], True)


def test_outside_of_a_repository_the_turn_is_empty(command: Command, home: Path) -> None:
    """No checkpoint can be made there."""
    command("run", "@bash echo x > x")
    nothing: dict[str, Any] = {
        "index": 0,
        "checkpoint": None,
        "files": [],
        "more": 0,
        "ended": False,
        "mayBeIts": True,
        "bringBack": None,
    }
    assert turns(home) == [nothing]


def test_where_no_turn_has_changed_files_there_are_no_checkpoints(repository: Command, home: Path) -> None:
    """A session that only reads costs no store, and its cards have an empty turn."""
    repository("run", "@read plan.md")
    (turn,) = turns(home)
    assert (turn["files"], turn["checkpoint"], turn["bringBack"]) == ([], None, None)


def test_a_turn_of_another_agent_has_its_files_at_its_end(repository: Command, home: Path) -> None:
    """While it goes on, the card has its checkpoint; a call of the next turn has nothing of it."""
    event(repository, "UserPromptSubmit", prompt="tidy up")
    call(repository, "c1", "rm plan.md list.md")
    (open_turn,) = turns(home)
    assert open_turn["checkpoint"]
    assert (open_turn["files"], open_turn["ended"], open_turn["bringBack"]) == ([], False, None)
    event(repository, "Stop")
    event(repository, "UserPromptSubmit", prompt="look around")
    call(repository, "c2", "ls")
    event(repository, "Stop")
    ended, following = turns(home)
    assert (ended["files"], ended["checkpoint"]) == (["list.md", "plan.md"], open_turn["checkpoint"])
    assert shlex.split(ended["bringBack"])[:3] == ["agent-hooks", "undo", "--turn"]
    assert (following["files"], following["checkpoint"], following["bringBack"]) == ([], None, None)
    with shown(home) as view:
        assert [bool(flags & CHANGED_FILES) for flags in view.columns().flags] == [True, False]


def test_a_call_that_only_a_transcript_has_belongs_to_no_known_turn(repository: Command, home: Path) -> None:
    """Its session had no hooks, so no checkpoint was made."""
    put(home, "codex")
    view = View(home / ".agent", user=home)
    view.refresh()
    assert view.card(0)["turn"] is None
    view.close()


def test_files_that_cannot_be_brought_back_are_named_all_the_same(repository: Command, home: Path) -> None:
    """The record has them when the checkpoints are gone, or the whole working tree."""
    repository("run", LOSS)
    before = turns(home)[0]
    assert before["bringBack"]
    (marks,) = (home / ".agent" / "checkpoints").glob("*/marks")
    marks.rename(marks.with_name("moved"))
    marks.write_text("a file in their place")
    assert turns(home)[0] == before | {"bringBack": None}
    marks.unlink()
    marks.with_name("moved").rename(marks)
    repository("checkpoints", "prune", "--all")
    assert turns(home)[0] == before | {"bringBack": None}
    shutil.rmtree(repository.project)
    assert turns(home)[0] == before | {"bringBack": None}
