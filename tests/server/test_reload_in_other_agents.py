"""Hooks of another agent's session are loaded again by the resident server."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

from other_agent import OtherAgent

LIFE = """
    def register(api):
        api.state.setdefault("calls", 0)
        @api.on("session", inline=True)
        def hear(event, ctx):
            with open("life", "a") as file:
                print("{0}", event.reason, event.reload, api.state["calls"], file=file)
        @api.on("tool_call", inline=True)
        def judge(event, ctx):
            api.state["calls"] += 1
            return {{"block": True, "reason": f"{0} {{api.state['calls']}}"}}
"""


def reason(answer: Any) -> str:
    """Return the reason of a denial without its signature."""
    return str(answer["hookSpecificOutput"]["permissionDecisionReason"]).partition(" (")[0]


def test_state_is_handed_over_in_a_session_of_another_agent(agent: OtherAgent) -> None:
    """The former hooks hear a shutdown, and the new ones a start; the session goes on."""
    hook = agent.command.add_hook(LIFE.format("old"))
    life = Path(agent.command.project, "life")
    assert reason(agent()) == "old 1"
    hook.write_text(dedent(LIFE.format("new")))
    assert reason(agent()) == "new 2"
    assert life.read_text().splitlines() == ["old start None 0", "old shutdown True 1", "new start True 1"]


def test_a_broken_edit_keeps_the_old_gate_in_another_agent(agent: OtherAgent) -> None:
    """The person reads of it once, a mended file counts, and so do settings that cannot be read."""
    hook = agent.command.add_hook(LIFE.format("old"))
    assert reason(agent()) == "old 1"
    hook.write_text("def register(api:\n")
    answer = agent()
    assert reason(answer) == "old 2"
    assert "its former version stays in force" in answer["systemMessage"]
    assert "systemMessage" not in agent()
    settings = hook.parent.parent / "settings.json"
    settings.write_text("{")
    answer = agent()
    assert reason(answer) == "old 4"
    assert "the former hooks and settings stay in force" in answer["systemMessage"]
    settings.unlink()
    hook.write_text(dedent(LIFE.format("mended")))
    assert reason(agent()) == "mended 5"
