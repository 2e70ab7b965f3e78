"""The question whether hooks count, before the interactive mode takes the terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]


@pytest.mark.usefixtures("no_agent_around")
def test_the_interactive_mode_asks_first(terminal: Terminal, command: Command) -> None:
    """The answer counts for the session; the next start asks nothing."""
    command.trusted = False
    command.add_hook("def register(api):\n    api.on('turn_end', lambda event, ctx: None)\n")
    tmux = terminal(columns=100, rows=40)
    tmux.enter("clear; agent run --no-session")
    shown = tmux.ends_with("[y/N]")
    assert "subscribes to         turn_end" in shown
    tmux.enter("y")
    tmux.sees("/help")
    tmux.enter("/hooks")
    tmux.sees("turn_end", 2)
    tmux.press("C-d")
    tmux.sees("left with 0")
    tmux.start_agent("--no-session")
    assert "[y/N]" not in tmux.screen()
