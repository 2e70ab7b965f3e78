"""Hooks are mended in an editor while the agent waits at the prompt, in a real terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]

GATE = """
    def register(api):
        @api.on("tool_call", tool="bash")
        def gate(event, ctx):
            return {{"block": True, "reason": "by the {} gate"}}
"""


def test_a_hook_mended_in_the_editor_judges_the_next_call(terminal: Terminal, command: Command) -> None:
    """A broken edit keeps the gate and is named; `/reload` and `/hooks` say it too."""
    hook = command.add_hook(GATE.format("old"))
    tmux = terminal(columns=100)
    tmux.start_agent("--no-session")
    tmux.enter("@bash echo one")
    tmux.sees("by the old gate")

    hook.write_text(dedent(GATE.format("mended")))
    tmux.enter("@bash echo two")
    tmux.sees("by the mended gate")

    hook.write_text("def register(api:\n")
    tmux.enter("@bash echo three")
    tmux.sees("its former version stays in force")
    tmux.sees("by the mended gate", times=2)
    tmux.enter("/hooks")
    tmux.sees("tool_call  .agent/hooks/hook.py")
    tmux.sees("its former version stays in force", times=2)

    hook.write_text("def register(api): pass\n")
    tmux.enter("/reload")
    tmux.sees("in force: 1 hook")
    tmux.enter("@bash echo f'o'ur")
    tmux.sees("→ ok")
    tmux.enter("/quit")
    tmux.sees("left with 0")


def test_reload_says_each_time_that_a_changed_hook_waits_for_approval(terminal: Terminal, command: Command) -> None:
    """Otherwise the person would think that the edit counts."""
    command.trusted = False
    hook = command.add_hook(GATE.format("old"))
    command("trust", "--yes")
    tmux = terminal(columns=150)
    tmux.start_agent("--no-session")
    hook.write_text(dedent(GATE.format("mended")))
    for times in (1, 2):
        tmux.enter("/reload")
        tmux.sees("read and approve: /trust", times=times)
    tmux.enter("@bash echo one")
    tmux.sees("by the old gate")


@pytest.mark.usefixtures("no_agent_around")
def test_one_key_takes_a_change_of_own_hooks_up(terminal: Terminal, home: Path) -> None:
    """Until then the former version judges. A no, and a wrong code, change nothing."""
    hook = home / ".agent" / "hooks" / "own.py"
    hook.parent.mkdir(parents=True)
    hook.write_text(dedent(GATE.format("own")))
    tmux = terminal(columns=150, rows=90)
    tmux.start_agent("--no-session")
    tmux.enter("@bash echo one")
    tmux.sees("by the own gate")

    hook.write_text("def register(api): pass\n")
    tmux.enter("@bash echo two")
    tmux.sees("the former version of ~/.agent/hooks/own.py")
    for times, answer in enumerate(("n", "y"), start=1):
        tmux.rests()
        tmux.press("C-t")
        shown = tmux.sees("Take these changes up? [y/N]", times)
        assert shown.count('"reason": "by the own gate"') == times, "the changes have the removed lines"
        tmux.type(answer)
        tmux.press("Enter")
        if answer == "n":
            tmux.rests()
            tmux.enter("@bash echo three")
            tmux.sees("the former version of ~/.agent/hooks/own.py", 2)
    code = re.search(r"Type (\w+) and Enter:", tmux.sees("and Enter:"))
    assert code is not None
    tmux.type(code[1])
    tmux.press("Enter")
    tmux.sees("taken up")
    tmux.rests()
    tmux.enter("@bash echo f'o'ur")
    tmux.sees("→ ok")
    tmux.enter("/quit")
    tmux.sees("left with 0")
