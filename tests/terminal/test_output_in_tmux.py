"""The output of calls and of the model, in a real terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from model_server import ModelServer, Say
from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]
COUNTS = "@bash for i in $(seq 12); do echo said $i; done; sleep 1000"


def test_the_last_lines_of_a_running_call_are_shown_and_stay_after_esc(terminal: Terminal, command: Command) -> None:
    """The call stands above them, first with its last lines alone, then with the number of those before."""
    tmux = terminal(columns=100)
    tmux.start_agent("--no-session")
    tmux.enter(COUNTS)
    screen = tmux.sees("  said 12\n")
    shown = [line.strip() for line in screen.splitlines() if line.startswith("  said")]
    assert shown == [f"said {number}" for number in range(8, 13)]
    assert "\n• bash for i in" in screen
    tmux.press("Escape")
    screen = tmux.sees("\naborted\n")
    assert "sleep 1000 → stopped (" in screen.replace("\n  ", " ")
    assert "  … 7 lines before (Ctrl-O)\n  said 8\n" in screen
    assert "said 12\naborted" in screen


def test_two_calls_at_once_share_a_small_screen(terminal: Terminal, command: Command) -> None:
    """The prompt line stays, and each call shows its end."""
    tmux = terminal(columns=40)
    tmux.start_agent("--no-session")
    tmux.resize(40, 10)
    tmux.type("@bash seq 1 50; sleep 1000")
    tmux.press("M-Enter")
    tmux.enter("@bash seq 51 99; sleep 1001")
    screen = tmux.until(lambda shown: "  50\n" in shown and "  99\n" in shown, "the end of both outputs")
    assert "\n>" in screen
    tmux.press("Escape")
    tmux.sees("aborted")


def test_a_thought_of_the_model_is_shown_short_and_is_no_part_of_the_answer(
    terminal: Terminal, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first lines, and the number of the others; print mode prints the answer only."""
    thought = "\n".join(f"I ponder {number}." for number in range(1, 9))
    with ModelServer() as server:
        for name, value in server.environment("openai").items():
            monkeypatch.setenv(name, value)
        server.play(Say("Done.", thinking=thought), Say("Printed.", thinking=thought))
        tmux = terminal()
        tmux.start_agent("--no-session", "--model openai:m")
        tmux.enter("why?")
        screen = tmux.until(lambda shown: "\n\nDone.\n" in shown and "working" not in shown, "the end")
        assert "> why?\n  I ponder 1.\n" in screen
        assert "  I ponder 5.\n  … 3 more lines (Ctrl-O)\n\nDone." in screen
        done = command("run", "--no-session", "--model", "openai:m", "why?")
        assert done.stdout == "Printed.\n"
        assert "ponder" not in done.stderr


def test_a_terminal_that_becomes_narrower_keeps_no_rows_of_the_former_drawing(
    terminal: Terminal, command: Command
) -> None:
    """The terminal has broken them anew; the conversation stays whole."""
    tmux = terminal(columns=100, rows=30)
    tmux.start_agent("--no-session")
    tmux.enter("@bash echo first line")
    tmux.sees("  first line")
    tmux.type("a line that is longer than forty columns, so that it is broken in two " + "x" * 60)
    tmux.sees("xxx\n")
    for columns in (60, 40, 24, 90):
        tmux.resize(columns, 30)

        def holds(_: str) -> bool:
            shown = tmux.history()
            once = shown.count("> a line that") == shown.count("\npuppet · 0") == shown.count("  first line") == 1
            return once and f"{'x' * 20}" in shown

        tmux.until(holds, f"one drawing in {columns} columns")
