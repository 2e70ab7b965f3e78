"""The question whether hooks count, before the interactive mode takes the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from running import Command
from support import approve
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
    tmux.leave()
    tmux.sees("left with 0")
    tmux.start_agent("--no-session")
    assert "[y/N]" not in tmux.screen()


def test_a_hook_is_approved_inside_of_the_program(terminal: Callable[..., Tmux], command: Command) -> None:
    """Ctrl-C leaves the question alone; a no is asked again; after a yes the hook judges; then nothing waits."""
    command.trusted = False
    tmux = terminal(columns=120, rows=50)
    tmux.start_agent("--no-session")
    tmux.enter("/trust")
    tmux.sees("no hooks and settings wait for approval here")
    command.add_hook(
        """
        from agent_hooks import Block

        def register(api):
            api.on("tool_call", lambda event, ctx: Block("not today"))
        """
    )
    tmux.enter("/trust")
    tmux.sees("count from now on? [y/N]")
    tmux.press("C-c")
    tmux.press("Enter")
    tmux.sees("not approved, and not asked again until it changes")
    tmux.enter("@bash echo a$((40+2))b")
    tmux.sees("  a42b")
    tmux.enter("/trust")
    tmux.sees("count from now on? [y/N]", times=2)
    tmux.type("y")
    tmux.press("Enter")
    # The running session belongs to an agent.
    code = re.search(r"Type (\w+) and Enter:", tmux.sees("and Enter:"))
    assert code is not None
    tmux.type(code[1])
    tmux.press("Enter")
    tmux.sees("in force: 1 hook")
    tmux.enter("@bash true")
    tmux.sees("blocked: not today")


def test_a_hook_that_is_saved_while_the_agent_rests_is_told_at_once(
    terminal: Callable[..., Tmux], command: Command
) -> None:
    """No message is needed; an approval that is given elsewhere counts at once too."""
    command.trusted = False
    tmux = terminal(columns=160, rows=40)
    tmux.start_agent("--no-session")
    command.add_hook("def register(api): pass\n")
    tmux.sees("1 file not used, because no person has approved them:")
    approve(command.project)
    tmux.sees("puppet · 1 hook")
