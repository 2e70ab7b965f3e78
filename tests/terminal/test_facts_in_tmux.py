"""The facts about a session, in a real terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from model_server import ModelServer, Say
from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal


def test_status_and_the_line_below_the_prompt_tell_how_full_the_context_is(
    terminal: Callable[..., Tmux], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction says the tokens before and after it, and its own request is among those of the session."""
    with ModelServer() as server:
        for name, value in server.environment("openai").items():
            monkeypatch.setenv(name, value)
        server.play(Say("One.", tokens=30_000), Say("Two.", tokens=64_000), Say("A summary.", tokens=1_000))
        tmux = terminal(columns=100, rows=50)
        tmux.start_agent("--model openai:gpt-4o")
        tmux.enter("first")
        tmux.sees("One.")
        tmux.enter("second")
        tmux.sees("Two.")
        tmux.sees("· context 50 % ·")
        tmux.enter("/cost")
        screen = tmux.sees("in force   0 hooks")
        assert "model      openai:gpt-4o, thinking: off" in screen
        assert "50 % of the 128,000 that the model takes" in screen
        before = spent(screen)
        assert f"directory  {command.project}" in tmux.history()
        tmux.command("/compact")
        screen = tmux.sees("tokens before, ")
        assert "summed up the older part: 64," in screen
        tmux.enter("/status")
        tmux.sees("in force   0 hooks", times=2)
        assert spent(tmux.screen()) >= before + 1_000


def spent(screen: str) -> int:
    """Return the tokens of the session, as the last `/status` says."""
    line = next(line for line in reversed(screen.splitlines()) if line.startswith("spent"))
    return int(line.split()[1].replace(",", ""))
