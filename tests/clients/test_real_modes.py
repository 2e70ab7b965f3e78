"""The modes in which a real client answers questions of permission by itself: none of them answers a question of ours."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from clients.drivers import DRIVERS
from clients.installing import PINNED
from clients.script import Call, Calls, Shell, Write, script
from clients.seat import Seat

pytestmark = [pytest.mark.client, pytest.mark.terminal]
ASKS = """
from agent_hooks import Ask


def register(api):
    api.on("tool_call", lambda event, ctx: Ask("Shall it write?"), tool="write")
"""
# The client, the options of its mode, and the tool that the mode lets run without a question.  The matrix has one
# more mode of each client, the one in which it asks about nothing.
MODES: list[tuple[str, Sequence[str], str]] = [
    ("claude-code", ["--permission-mode", "auto"], "shell"),
    ("claude-code", ["--permission-mode", "acceptEdits"], "write"),
    ("claude-code", ["--permission-mode", "dontAsk", "--allowedTools", "Bash"], "shell"),
    ("claude-code", ["--allowedTools", "Bash"], "shell"),
    ("gemini-cli", ["--approval-mode", "auto_edit"], "write"),
    ("qwen-code", ["--approval-mode", "auto-edit"], "write"),
    ("copilot-cli", ["--autopilot", "--allow-all"], "shell"),
]


@pytest.mark.parametrize(("name", "mode", "tool"), MODES, ids=[" ".join([name, *mode]) for name, mode, _ in MODES])
def test_no_mode_of_a_client_answers_a_question_of_ours(
    name: str, mode: Sequence[str], tool: str, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person is asked, and a no holds, or the client denies the call by itself."""
    driver = DRIVERS[name]
    # Qwen Code's driver opens it in one mode only.
    line = driver.interactive
    monkeypatch.setattr(
        driver, "interactive", lambda self, **_: [*(each for each in line(self) if each != "-y"), *mode]
    )
    made = str(project / "made")
    call: Call = Shell(f"echo git push; touch {made}") if tool == "shell" else Write(made, "text")
    with closing(driver(project, home, driver.models[0], PINNED)) as client:
        seat = Seat(client)
        seat.add_hook("asks.py", ASKS)
        seat.ready()
        steps, screen = script(Calls(call), last="it is over"), client.screen
        assert screen is not None
        with seat.terminal(steps, automatic=True) as tmux:
            seat.prompt(tmux, steps, "go")
            shown = tmux.until(lambda text: screen.asking in text or "it is over" in text, "a question or a denial")
            if screen.asking in shown:
                # For files, some clients show a question of their own instead of ours.
                assert "Shall it" in shown or tool == "write"
                seat.answer(tmux, screen.no)
                tmux.sees(screen.idle)
        assert "tool_call" in seat.events(), shown
        assert not seat.has("made")
