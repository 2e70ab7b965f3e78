"""The question about a tool call, in a real terminal."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

from running import Command
from support import PATIENCE
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


ASKS = """
from agent_hooks import Ask

def register(api):
    api.on("tool_call", lambda event, ctx: Ask("Run this command?"), tool="bash")
"""
CONFIRMS = """
def register(api):
    @api.on("tool_call", tool="bash")
    async def gate(event, ctx):
        if not await ctx.ui.confirm("Run it?", "the model wants to look"):
            return {"block": True, "reason": "no"}
"""
END = "; touch PWNED"


@pytest.mark.slow
@pytest.mark.parametrize("hook", [ASKS, CONFIRMS])
@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_a_yes_counts_after_the_end_of_the_call_was_on_screen(
    terminal: Callable[..., Tmux], command: Command, hook: str, size: tuple[int, int]
) -> None:
    """Both ends are shown at first.  A digit, Enter and pasted text allow nothing before, but No ends the dialog."""
    project = command.project
    call = "git status # " + "nothing to see here, move along please. " * 40 + "\n: " + " " * 1600 + END
    turn = {"text": "", "toolCalls": [{"name": "bash", "arguments": {"command": call}}]}
    (project / "turns.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [turn, {"text": "done"}] * 3))
    (project / "ask.py").write_text(hook)
    tmux = terminal(columns=size[0], rows=size[1])
    tmux.start_agent("--model script:turns.jsonl", "--no-session", "--hook ask.py")
    tmux.enter("go")
    screen = tmux.sees("> 1. No")
    assert "asked by ask.py" in screen
    assert "bash git status # nothing" in screen
    assert "touch PWNED" in screen
    assert "more lines: PgDn shows them" in screen
    assert "read to the end first: PgDn" in screen
    # The digit and Enter do nothing before the end was on screen.
    tmux.press("2")
    tmux.sees("> 2. Yes")
    tmux.press("Enter")
    # Each answer before the end would end the dialog.
    tmux.press("Home")
    tmux.sees("> 1. No")
    # All of the pages in one read: none of them was on screen.
    tmux.press(*["NPage"] * 60, "Down", "Enter")
    tmux.sees("> 2. Yes")
    assert not (project / "PWNED").exists()
    tmux.press("Home")
    tmux.sees("> 1. No")
    tmux.press("Enter")
    tmux.sees("blocked")
    tmux.rests()
    assert not (project / "PWNED").exists()
    tmux.enter("go")
    tmux.sees("> 1. No")
    for _ in range(60):
        screen = tmux.screen()
        if "read to the end" not in screen:
            break
        tmux.press("NPage")
        tmux.until(lambda now, before=screen: now != before, "the next page")  # type: ignore[misc]  # no type for it
    assert "blanks]" in screen
    # A line that arrives in one read is a text.
    tmux.paste("2\n")
    tmux.press("Home")
    tmux.sees("> 1. No")
    assert not (project / "PWNED").exists()
    tmux.press("Down")
    tmux.sees("> 2. Yes")
    tmux.press("Enter")
    tmux.sees("→ ok")
    assert (project / "PWNED").exists()


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "\\033[18;24r", "\\033(0"])
def test_a_question_that_another_program_draws_over_comes_back(
    terminal: Callable[..., Tmux], command: Command, before: str
) -> None:
    """Whole, also where the program has changed how the terminal draws."""
    turn = {"text": "", "toolCalls": [{"name": "bash", "arguments": {"command": "touch PWNED"}}]}
    (command.project / "turns.jsonl").write_text(json.dumps(turn) + "\n" + json.dumps({"text": "done"}))
    (command.project / "ask.py").write_text(ASKS)
    tmux = terminal()
    tmux.start_agent("--model script:turns.jsonl", "--no-session", "--hook ask.py")
    tmux.enter("go")
    tmux.sees("> 1. No")
    false = "Run this command?\\nbash git status\\n> 1. No\\n  2. Yes, once"
    drawn = "\\033[2J\\033[H" + "drawn\\n" * 16 + before + "\\033[20;1H" + false
    subprocess.run(["sh", "-c", 'printf "$0" > "$1"', drawn, tmux.device], check=True, timeout=PATIENCE)
    screen = tmux.until(lambda screen: "drawn" in screen and screen.endswith("the agent"), "the question below")
    lines = screen.splitlines()
    last = max(at for at, line in enumerate(lines) if line == "Run this command?")
    assert lines[last : last + 6] == [
        "Run this command?",
        "risk: writes PWNED",
        "asked by ask.py",
        "bash touch PWNED",
        "> 1. No",
        "  2. Yes, once",
    ]
    tmux.press("2")
    tmux.sees("touch PWNED → ok")
    assert (command.project / "PWNED").exists()
