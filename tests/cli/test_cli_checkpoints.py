"""`agent-hooks checkpoints`, run as a user does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import anyio
import pytest

from agent_hooks import checkpoints
from running import Command


@pytest.fixture
def saved(command: Command) -> Command:
    """Give a project with a checkpoint of an old session, and two of the newest."""
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    note = command.project / "note"
    for number, (session, entry) in enumerate([("old", 2), ("new-session", 2), ("new-session", 5)]):
        note.write_text(f"{number}\n")
        anyio.run(checkpoints.create, command.project, session, entry)
    note.write_text("now\n")
    (command.project / "sub").mkdir()
    return command


def rows(command: Command, *args: str) -> list[list[str]]:
    """Return the first two columns of the table of `list`."""
    return [line.split()[:2] for line in command("checkpoints", "list", *args).stdout.splitlines()[1:]]


def note(command: Command) -> str:
    """Return the text of the file."""
    return (command.project / "note").read_text().strip()


def test_list_shows_them_by_age_for_people_and_programs(saved: Command) -> None:
    """The list is of all sessions, or of one by the beginning of its id; it works in a directory below as well."""
    assert rows(saved) == [["old", "2"], ["new-sess", "2"], ["new-sess", "5"]]
    assert rows(saved, "--session", "n", "--cwd", "sub") == [["new-sess", "2"], ["new-sess", "5"]]
    with (saved.project / "large").open("wb") as file:
        file.truncate(51 << 20)
    anyio.run(checkpoints.create, saved.project, "new-session", 6)
    [*_, last] = json.loads(saved("checkpoints", "list", "--json").stdout)
    assert (last["sessionId"], last["name"], last["entryIndex"]) == ("new-session", "6", 6)
    assert last["skipped"] == [{"path": "large", "reason": "untracked and large: 51 MB, and the limit is 50 MB"}]
    assert "large: untracked and large" in saved("checkpoints", "list").stdout


def test_restore_and_undo_say_what_they_did(saved: Command) -> None:
    """A name of several sessions needs `--session`. A second undo is a redo."""
    assert saved("checkpoints", "restore", "2", "--yes", code=1).stderr == (
        "agent-hooks: several sessions have a checkpoint '2'. Say --session with one of: old, new-session\n"
    )
    done = saved("checkpoints", "restore", "2", "--session", "new", "--yes")
    assert done.stdout == (
        "write: note\n"
        "restored 2 of session new-sess: 1 file written, 0 files deleted; `agent-hooks checkpoints undo` takes it back\n"
    )
    assert note(saved) == "1"
    saved("checkpoints", "restore", "--session", "old", "2", "--yes")
    assert note(saved) == "0"
    for expected in ("1", "0"):
        assert "restored undo-" in saved("checkpoints", "undo").stdout
        assert note(saved) == expected
    saved("checkpoints", "restore", "--session", "new", "undo-1", "--yes")
    assert note(saved) == "now"


def test_a_restore_shows_the_files_and_asks(saved: Command) -> None:
    """Without a terminal it changes nothing. At one, the checkpoint is chosen from a list."""
    (saved.project / "mine").write_text("untracked\n")
    refused = saved("checkpoints", "restore", "5", code=1)
    assert refused.stdout == "write: note\ndelete: mine\n"
    assert refused.stderr == (
        "agent-hooks: nothing was changed. Without a terminal, say --yes to restore 5 of session new-sess\n"
    )
    for answer, code, text in (("\n", 1, "now"), ("y\n", 0, "2")):
        dialog = saved.dialog("checkpoints", "restore")
        # The list takes keys as soon as it shows this mark.
        dialog.sees("> 1. 5 of session new-sess")
        dialog.type("\r")
        assert "delete: mine" in dialog.sees("Restore 5 of session new-sess? [y/N]")
        dialog.type(answer)
        dialog.end(code)
        assert note(saved) == text
    assert not (saved.project / "mine").exists()


def test_what_is_not_restored_is_said(saved: Command) -> None:
    """Each such file is a line on stderr."""
    (saved.project / ".git/info/exclude").write_text("note\n")
    (saved.project / "note").unlink()
    (saved.project / "note" / "mine").mkdir(parents=True)
    (saved.project / "note" / "mine" / "file").touch()
    done = saved("checkpoints", "restore", "5", "--yes")
    assert done.stderr == "not restored: note: a directory is in the way, with files that are not in the checkpoint\n"


def test_diff_shows_what_changed_since(saved: Command) -> None:
    """The diff begins at the last checkpoint, or at the named one."""
    assert "-2\n+now\n" in saved("checkpoints", "diff").stdout
    assert "-1\n+now\n" in saved("checkpoints", "diff", "2", "--session", "new").stdout
    saved("checkpoints", "restore", "5", "--yes")
    assert saved("checkpoints", "diff").stdout == ""


def test_prune_forgets_what_it_is_told_to(saved: Command) -> None:
    """Without an option, it forgets nothing."""
    done = saved("checkpoints", "prune", code=2)
    assert "which ones? Say --older-than DAYS, --keep N or --all" in done.stderr
    assert saved("checkpoints", "prune", "--older-than", "1").stdout == "forgot 0 checkpoints\n"
    assert saved("checkpoints", "prune", "--keep", "1").stdout == "forgot 1 checkpoint\n"
    assert rows(saved) == [["old", "2"], ["new-sess", "5"]]
    assert saved("checkpoints", "prune", "--session", "old", "--all").stdout == "forgot 1 checkpoint\n"
    saved("checkpoints", "prune", "--all")
    assert "no checkpoints; one is made before each turn of an agent" in saved("checkpoints", "list").stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["restore", "3"], "there is no checkpoint '3' here; known are: 2, 5"),
        (
            ["restore", "--session", "x", "2"],
            "--session x: no session with checkpoints has an id that begins so; there are: new-session, old",
        ),
        (["restore", "--session", "", "2"], "--session '': several sessions begin so: new-session, old"),
        (["undo"], "nothing to undo: no checkpoint has been restored here"),
    ],
)
def test_what_cannot_be_done_is_one_line(saved: Command, args: list[str], told: str) -> None:
    """The line names the existing checkpoints and sessions."""
    assert saved("checkpoints", *args, code=1).stderr == f"agent-hooks: {told}\n"


def test_without_a_repository_or_checkpoints_it_says_so(command: Command, tmp_path: Path) -> None:
    """The exit code is 1, and there is no traceback."""
    assert "is not in a git repository" in command("checkpoints", "list", code=1).stderr
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    assert command("checkpoints", "diff", code=1).stderr == "agent-hooks: there are no checkpoints here\n"
    command("checkpoints", "restore", "--session", "x", "1", code=1)
