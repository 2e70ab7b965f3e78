"""Other programs that get the terminal for a while: the pager with the whole conversation, and the editor."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]

ASKING = """
from agent_hooks import Ask

def register(api):
    @api.on("tool_call", tool="bash")
    async def ask(event, ctx):
        return Ask("Sure?") if event.input["command"].startswith("sleep 2") else None
"""


@pytest.mark.skipif(shutil.which("less") is None, reason="there is no less on this machine")
def test_the_pager_shows_the_whole_conversation(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines of an output, the end first; Ctrl-C and q in it leave the session as it was."""
    monkeypatch.delenv("PAGER", raising=False)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("@bash seq 101 160")
    tmux.sees("… 55 more lines (Ctrl-O)")
    tmux.press("C-o")
    tmux.sees("  160\n")
    assert "Ctrl-O" not in tmux.screen()
    tmux.press("C-c")

    def at_the_beginning(screen: str) -> bool:
        # Ctrl-C throws away the keys that come with it.
        tmux.press("g")
        return "> @bash seq" in screen and "  101\n" in screen

    tmux.until(at_the_beginning, "the beginning")
    tmux.press("q")
    tmux.sees("… 55 more lines (Ctrl-O)")
    tmux.enter("@bash echo a$((40+2))b")
    tmux.sees("a42b")


@pytest.mark.skipif(shutil.which("less") is None, reason="there is no less on this machine")
def test_lines_that_come_meanwhile_are_printed_after_the_pager(terminal: Terminal, command: Command) -> None:
    """The run goes on below the pager, and a question of a hook ends it."""
    hook = command.project / "ask.py"
    hook.write_text(ASKING)
    go = command.project / "go"
    tmux = terminal(columns=200)
    tmux.start_agent("--no-session", f"--hook {hook}")
    tmux.enter(f"@bash seq 101 120; until [ -e {go} ]; do sleep 0.05; done; echo end$((1+1)) && rm {go}")
    tmux.sees("• bash seq")
    tmux.press("C-o")
    tmux.sees("(END)")
    go.touch()
    tmux.until(lambda screen: not go.exists(), "the end of the call")
    assert "end2" not in tmux.screen()
    tmux.press("q")
    tmux.sees("… 16 more lines (Ctrl-O)")
    tmux.press("M-Enter")
    tmux.type("@bash until [ -e go ]; do sleep 0.05; done")
    tmux.press("M-Enter")
    tmux.type("---")
    tmux.press("M-Enter")
    tmux.enter("@bash sleep 2; echo both")
    tmux.sees("Esc aborts")
    tmux.press("C-o")
    tmux.sees("(END)")
    go.touch()
    tmux.asks("Sure?")
    tmux.press("Escape")
    tmux.sees("stopped by your No")


def test_without_a_pager_an_error_names_the_remedy(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not exist, or a value that is no command."""
    monkeypatch.setenv("PAGER", "no-such-pager --fast")
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.press("C-o")
    tmux.sees("no-such-pager cannot be started: No such file")
    tmux.enter("@bash echo a$((40+2))b")
    tmux.sees("a42b")


def test_the_line_is_written_in_the_editor(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It gets the text so far; a failure of the editor changes nothing."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ngrep -q stop "$1" && exit 3\nsed -i "s/two/three/;s/one/@bash echo two/" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.type("one")
    tmux.sees("> one")
    tmux.press("C-g")
    tmux.sees("> @bash echo two")
    tmux.press("C-x", "C-e")
    tmux.sees("> @bash echo three")
    tmux.press("Enter")
    tmux.sees("• bash echo three → ok")
    tmux.type("stop here")
    tmux.sees("> stop here")
    tmux.press("C-g")
    tmux.sees("ended with 3; the line stays as it was")
    tmux.sees("> stop here")
