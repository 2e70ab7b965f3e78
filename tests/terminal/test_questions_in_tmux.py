"""The question about a tool call, in a real terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal


@pytest.mark.behaviour("QS1", "QS12")
def test_a_person_answers_the_question_of_a_guard(terminal: Callable[..., Tmux], command: Command) -> None:
    """No is chosen first; a reason reaches the model; yes runs the call; a wall asks nothing."""
    kept = command.project / "dist2"
    kept.mkdir()
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("@bash rm -rf dist2")
    tmux.sees("risk: deletes everything in dist2")
    tmux.sees("> No")
    tmux.press("Enter")
    tmux.sees("the user said no (asked by")
    tmux.enter("@bash rm -rf dist2 #2")
    tmux.sees("> No")
    tmux.press("End")
    tmux.sees("> No, and say why")
    tmux.press("Enter")
    tmux.sees("> the model reads it")
    tmux.enter("keep it")
    tmux.sees("the user said no: keep it")
    assert kept.is_dir()
    tmux.enter("@bash rm -rf dist2 #3")
    tmux.sees("> No")
    tmux.press("Down")
    tmux.sees("> Yes, once")
    tmux.press("Enter")
    tmux.sees("rm -rf dist2 #3 → ok")
    assert not kept.exists()
    tmux.enter("@bash rm -rf /usr")
    tmux.sees("blocked: removes a tree by force")
