"""`agent-hooks undo` and the checkpoints of the host's turns, run as a user does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from agent_hooks.turn_notes import store_of
from running import Command

PROMPT = "@bash rm gone\n---\n@bash echo agent > notes\n---\n@read notes"


@pytest.fixture
def repo(command: Command) -> Path:
    """Give a project with two untracked files, whose first turns an agent made."""
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    (command.project / "notes").write_text("by hand\n")
    (command.project / "gone").write_text("by hand too\n")
    return command.project


def test_each_response_that_changes_files_is_a_turn(command: Command, repo: Path) -> None:
    """They have one prompt; the response that only reads is none."""
    command("run", PROMPT)
    rows = json.loads(command("checkpoints", "list", "--json").stdout)
    assert [(row["turn"], row["files"], row["agent"]) for row in rows] == [
        (2, ["gone"], "agent-hooks"),
        (1, ["notes"], "agent-hooks"),
    ]
    assert len({row["entryIndex"] for row in rows}) == 2
    assert len({row["sessionId"] for row in rows}) == 1
    command("undo", "--yes")
    assert (repo / "notes").read_text() == "by hand\n"
    assert not (repo / "gone").exists()
    command("undo", "--yes")
    assert (repo / "gone").read_text() == "by hand too\n"
    assert "no turn of an agent has changed files here" in command("undo", "--yes", code=1).stderr


def test_undo_lists_and_asks_at_a_terminal(command: Command, repo: Path) -> None:
    """A no, which is the default, changes nothing."""
    command("run", PROMPT)
    (repo / "notes").write_text("since\n")
    for answer, text, code in (("\n", "since\n", 1), ("y\n", "by hand\n", 0)):
        dialog = command.dialog("undo", "2")
        seen = dialog.sees("Take back 2 turns? [y/N]")
        assert "notes  (edited since; the edit is kept beside)" in seen
        dialog.type(answer)
        dialog.end(code)
        assert (repo / "notes").read_text() == text
    [kept] = repo.glob("notes.edited-before-undo-*")
    assert kept.read_text() == "since\n"


def test_without_a_terminal_undo_needs_yes(command: Command, repo: Path) -> None:
    """It lists the turns all the same."""
    command("run", PROMPT)
    refused = command("undo", "2", code=1)
    assert refused.stdout.splitlines()[1] == "    notes"
    assert (
        refused.stderr == "agent-hooks: nothing was changed. Without a terminal, say --yes to take these turns back\n"
    )
    assert (repo / "notes").read_text() == "agent\n"
    assert "there is no turn 3: the newest is 1, and the oldest 2" in command("undo", "3", "--yes", code=1).stderr


def test_one_turn_is_taken_back_and_the_later_ones_stay(command: Command, repo: Path) -> None:
    """Files that came since are not its business."""
    command("run", PROMPT)
    (repo / "since").write_text("mine\n")
    rows = json.loads(command("checkpoints", "list", "--json").stdout)
    [first] = [row["turnId"] for row in rows if row["files"] == ["gone"]]
    command("undo", "--turn", first, "--yes")
    texts = {path.name: path.read_text() for path in repo.iterdir() if path.is_file()}
    assert texts == {"gone": "by hand too\n", "notes": "agent\n", "since": "mine\n"}
    assert "is taken back already" in command("undo", "--turn", first, "--yes", code=1).stderr
    assert "no turn x has changed files here" in command("undo", "--turn", "x", "--yes", code=1).stderr
    assert "either N or --turn ID" in command("undo", "2", "--turn", first, code=2).stderr
    command("checkpoints", "undo")
    assert not (repo / "gone").exists()


@pytest.mark.parametrize(
    "line",
    [
        ("undo", "--yes"),
        ("redo", "--yes"),
        ("checkpoints", "undo"),
        ("checkpoints", "restore", "--yes"),
        ("checkpoints", "prune", "--all"),
    ],
)
def test_below_an_agent_nothing_is_taken_back_or_forgotten(
    command: Command, repo: Path, monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...]
) -> None:
    """An undo is a decision of the person; the list stays open to agents."""
    command("run", PROMPT)
    before = command("checkpoints", "list").stdout
    with monkeypatch.context() as below:
        below.setenv("CLAUDECODE", "1")
        assert "is for a person, and claude (by $CLAUDECODE)" in command(*line, code=1).stderr
        assert command("checkpoints", "list").stdout == before
    assert (repo / "notes").read_text() == "agent\n"


def test_an_agent_of_ours_cannot_run_undo(command: Command, repo: Path) -> None:
    """The guard stops the call, and the command itself would refuse in a shell of the host."""
    command("run", PROMPT)
    done = command("run", "@bash agent-hooks undo --yes", code=None)
    assert "only a person takes turns of agents back" in done.stdout + done.stderr
    assert (repo / "notes").read_text() == "agent\n"


def test_redo_lists_and_asks_and_brings_the_changes_back(command: Command, repo: Path) -> None:
    """Without an undo, there is nothing to redo. A second redo takes the first one back."""
    command("run", PROMPT)
    assert "nothing to redo: no undo has changed files here" in command("redo", code=1).stderr
    assert "`agent-hooks redo` brings that back" in command("undo", "2", "--yes").stdout
    assert "Without a terminal, say --yes" in command("redo", code=1).stderr
    assert (repo / "gone").exists()
    assert "brought the changes of an undo back: 1 file written, 1 file deleted" in command("redo", "--yes").stdout
    assert (repo / "notes").read_text() == "agent\n"
    command("redo", "--yes")
    assert (repo / "notes").read_text() == "by hand\n"


def test_list_has_one_row_for_each_different_tree(command: Command, repo: Path) -> None:
    """Turns that changed nothing have none, and one that was taken back says so."""
    command("run", "@bash true")
    command("run", "@bash touch made")
    command("undo", "--yes")
    command("run", "@bash touch again")
    lines = command("checkpoints", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["turn", "undone", "1"]
    assert "1 file" in lines[2]
    assert "@bash touch again" in lines[2]
    assert "b/again" in command("checkpoints", "show").stdout
    assert "there is no turn 2" in command("checkpoints", "show", "2", code=1).stderr


def test_a_setting_of_the_person_turns_them_off_in_the_host(command: Command, repo: Path, home: Path) -> None:
    """Undo says that there is nothing."""
    (home / ".agent").mkdir(exist_ok=True)
    (home / ".agent" / "settings.json").write_text('{"checkpoints": {"enabled": false}}')
    command("run", PROMPT)
    assert not Path(store_of(str(repo))).exists()
    assert "no turn of an agent has changed files here" in command("undo", code=1).stderr
