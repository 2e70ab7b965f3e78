"""`/undo`, `/redo`, and the files after `/branch`, in a real terminal."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from model_server import ModelServer, Say
from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]
BREAK = "@bash rm gone; echo agent > notes"


@pytest.fixture
def repo(command: Command) -> Path:
    """Give a project with two untracked files."""
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    (command.project / "notes").write_text("by hand\n")
    (command.project / "gone").write_text("by hand too\n")
    return command.project


def is_whole(repo: Path) -> bool:
    """Tell whether both files are as the person left them."""
    return (repo / "gone").exists() and (repo / "notes").read_text() == "by hand\n"


def test_undo_and_redo_ask_and_the_model_learns_of_it(
    terminal: Terminal, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No is selected first and changes nothing; the next request to the model names the files."""
    with ModelServer() as server:
        for name, value in server.environment("openai").items():
            monkeypatch.setenv(name, value)
        server.play(Say("I see."))
        tmux = terminal(rows=60)
        tmux.start_agent("--model openai:m")
        tmux.command("/redo")
        tmux.sees("there is no undo that could be taken back")
        tmux.enter(BREAK)
        tmux.sees("→ ok")
        tmux.command("/undo")
        tmux.asks("Take back the changes of 1 message?")
        tmux.press("Enter")
        tmux.sees("nothing was changed")
        assert not is_whole(repo)
        tmux.command("/undo 1")
        assert "gone\n" in tmux.sees("> 1. No\n")
        tmux.press("Down")
        tmux.sees("> 2. Yes")
        tmux.press("Enter")
        tmux.sees("took back the changes of 1 message: 2 files written, 0 files deleted; /redo")
        assert is_whole(repo)
        tmux.enter("go on")
        tmux.sees("I see.")
        sent = str(server.requests[-1].body["messages"])
        note = 'The person has undone or redone your changes to these files: "gone", "notes".'
        assert note in sent
        assert sent.index(note) < sent.index("go on")
        assert "The person has undone" not in tmux.history()
        tmux.command("/redo")
        tmux.sees("> 1. No\n")
        tmux.press("Down")
        tmux.sees("> 2. Yes")
        tmux.press("Enter")
        tmux.sees("brought the changes of an undo back: 1 file written, 1 file deleted")
        assert not is_whole(repo)


def test_branch_offers_the_files_of_the_turns_that_it_leaves(terminal: Terminal, repo: Path) -> None:
    """They stay at first; a later branch from the new session offers them once more."""
    tmux = terminal(rows=60)
    tmux.start_agent()
    tmux.enter("@bash true")
    tmux.sees("• bash true → ok")
    tmux.rests()
    tmux.enter(BREAK)
    tmux.sees("I have made 1 call.", times=2)
    tmux.command("/branch")
    tmux.sees("↑↓ Enter")
    tmux.asks("Go back before which message?")
    tmux.press("Enter")
    tmux.asks("2 files changed since then")
    tmux.press("Enter")
    tmux.sees("the files stay as they are; /undo takes back turns")
    assert not is_whole(repo)
    tmux.press("C-c")
    tmux.command("/branch")
    tmux.asks("Go back before which message?")
    tmux.press("Enter")
    tmux.sees("> 1. Keep the files as they are")
    tmux.press("Down")
    tmux.sees("> 2. Take back the changes of 2 files too")
    tmux.press("Enter")
    tmux.sees("took back those changes: 2 files written")
    assert is_whole(repo)


def test_undo_says_why_it_cannot(terminal: Terminal, command: Command) -> None:
    """A wrong number, a directory without git, and an agent that works."""
    tmux = terminal()
    tmux.start_agent()
    tmux.command("/undo all")
    tmux.sees("say /undo, or /undo N with the number of messages")
    tmux.command("/undo")
    tmux.sees("in a git repository, so there are no checkpoints")
    tmux.enter("@bash sleep 1000")
    tmux.sees("Esc aborts")
    tmux.enter("/undo")
    tmux.sees("/undo: the agent is working; abort it first")
    tmux.press("Escape")
    tmux.sees("aborted")


def test_undo_is_about_a_message_with_all_its_turns(terminal: Terminal, repo: Path) -> None:
    """Where the last one changed nothing that is saved, a warning says so, and names the message before."""
    (repo / ".gitignore").write_text("build\n")
    tmux = terminal(rows=60, columns=120)
    tmux.start_agent()
    tmux.type("@bash echo agent > notes")
    tmux.press("M-Enter")
    tmux.type("---")
    tmux.press("M-Enter")
    tmux.enter("@bash rm gone")
    tmux.sees("I have made 2 calls.")
    tmux.enter("@bash echo x > build")
    tmux.sees("I have made 1 call.")
    tmux.command("/undo 2")
    tmux.sees("only 1 message changed files here")
    tmux.command("/undo")
    screen = tmux.asks("Take back the changes of 1 message?")
    assert "your last message changed no file that a checkpoint holds" in screen
    assert "    gone\n" in screen
    assert "    notes\n" in screen
    tmux.press("Down")
    tmux.sees("> 2. Yes")
    tmux.press("Enter")
    tmux.sees("took back the changes of 1 message: 2 files written")
    assert is_whole(repo)
    tmux.command("/undo")
    tmux.sees("no turn of an agent has changed files here")
