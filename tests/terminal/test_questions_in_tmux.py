"""The question about a tool call, in a real terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal


def test_a_person_answers_the_question_of_a_guard(terminal: Callable[..., Tmux], command: Command) -> None:
    """No is chosen first; a reason reaches the model; yes runs the call; a wall asks nothing."""
    kept = command.project / "dist2"
    kept.mkdir()
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("@bash rm -rf dist2")
    tmux.sees("risk: deletes everything in dist2")
    tmux.sees("> 1. No")
    tmux.press("Enter")
    tmux.sees("rm -rf dist2 → blocked: you said no\n")
    tmux.enter("@bash rm -rf dist2 #2")
    tmux.sees("> 1. No")
    tmux.press("End")
    tmux.sees("> 5. No, and say why")
    tmux.press("Enter")
    tmux.sees("> the model reads it")
    tmux.enter("keep it")
    tmux.sees("#2 → blocked: you said no: keep it\n")
    assert kept.is_dir()
    tmux.enter("@bash rm -rf dist2 #2b\\")
    tmux.type("@bash touch late\\")
    tmux.press("Enter")
    tmux.type("---\\")
    tmux.press("Enter")
    tmux.enter("@bash touch later")
    tmux.sees("> 1. No")
    tmux.press("Escape")
    tmux.sees("the run was stopped by your No")
    assert not (kept.parent / "late").exists()
    assert not (kept.parent / "later").exists()
    tmux.enter("@bash rm -rf dist2 #3")
    tmux.sees("> 1. No")
    tmux.press("2")
    tmux.sees("rm -rf dist2 #3 → ok")
    assert not kept.exists()
    tmux.enter("@bash rm -rf /usr")
    tmux.sees("blocked: removes a tree by force")


def test_a_person_lets_one_call_pass_that_a_wall_stops(terminal: Callable[..., Tmux], command: Command) -> None:
    """The line of the call names the command; the next such call is stopped again; self-protection is never lifted."""
    tmux = terminal(columns=200)
    tmux.start_agent("--no-session")
    for times, text in enumerate(("/allow", "/allow no-such", "/allow guard-settings"), 1):
        tmux.enter(text)
        tmux.sees("say /allow RULE", times=times)
    call = "@bash echo A=1 > .env"
    tmux.enter(call)
    screen = tmux.sees("or once: /allow ")
    rule = screen.partition("or once: /allow ")[2].split()[0]
    tmux.enter(f"/allow {rule}")
    tmux.sees(f"one call that meets {rule} is allowed")
    tmux.enter(call)
    tmux.sees("> .env → ok")
    assert (command.project / ".env").read_text() == "A=1\n"
    tmux.enter("/reload")
    tmux.sees("in force: 0 hooks", times=2)
    tmux.enter(call)
    tmux.sees("or once: /allow ", times=2)
