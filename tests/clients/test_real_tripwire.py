"""The tripwire in the real Claude Code: it stops a session whose gate was switched off, and no other one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.claude_seat import Calls, ClaudeSeat, bash
from model_server import Say

pytestmark = pytest.mark.client


def without_the_gate(claude: ClaudeSeat) -> None:
    """Remove the entry for calls from the settings; all others stay."""
    settings = json.loads(claude.settings.read_text())
    del settings["hooks"]["PreToolUse"]
    claude.settings.write_text(json.dumps(settings))


def alarms(home: Path) -> list[Path]:
    """Return the files of the alarms."""
    return list((home / ".agent" / "calls").glob("*.alarm"))


RESULTS = """
    from agent_hooks import Block

    def register(api):
        @api.on("tool_result")
        def seen(event, ctx):
            with open("log", "a") as log:
                log.write("result\\n")

        @api.on("tool_call")
        def gate(event, ctx):
            return Block("no") if "gated" in event.input.get("command", "") else None
"""


def test_a_gate_that_was_switched_off_stops_the_session(claude: ClaudeSeat, home: Path) -> None:
    """The person reads the reason at once, and again for the next prompt; a new session goes on."""
    claude.hook(RESULTS)
    without_the_gate(claude)
    run = claude.play(Say(calls=[bash("touch gated")]), Say("done"))
    assert any("Bash ran without having been judged" in each for each in run.notices)
    assert len(alarms(home)) == 1
    again = claude.play(prompt="go on", args=["--resume", run.session_id])
    assert not again.requests
    claude.install()
    gated = claude.play(Say(calls=[bash("touch gated")]), Say("done"))
    assert "no (.agent/hooks/hook.py)" in gated.results[0].text
    assert len(alarms(home)) == 1


def test_the_calls_of_a_day_raise_no_alarm(claude: ClaudeSeat, home: Path) -> None:
    """Parallel, failing, wrong and refused calls, those of a sub-agent, and a resumed session."""
    claude.hook(RESULTS)
    other = claude.project / "other.sh"
    other.write_text("""
        case "$(cat)" in *refused*) echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse",
            "permissionDecision": "deny", "permissionDecisionReason": "the other one refused it"}}';; esac
    """)
    hooks = json.loads(claude.settings.read_text())["hooks"]
    hooks["PreToolUse"].append({"hooks": [{"type": "command", "command": f"sh {other}"}]})
    claude.configure(hooks=hooks, permissions={"deny": ["Bash(touch forbidden)"]})
    wrong: Calls = [("Bash", {"cmd": "ls"}), ("Nonsense", {}), ("Read", {"file_path": "/nowhere"})]
    calls = [bash(f"echo {number}") for number in range(3)]
    agent = ("Agent", {"description": "x", "prompt": "echo from below", "run_in_background": False})
    first = claude.play(
        Say(calls=[*calls, bash("exit 3"), bash("touch gated"), bash("touch forbidden"), bash("echo refused")]),
        Say(calls=wrong),
        Say(calls=[agent]),
        Say(calls=[bash("echo below")]),
        Say("below is done"),
        Say("done"),
    )
    again = claude.play(Say(calls=[bash("echo again")]), Say("done"), args=["--resume", first.session_id])
    assert "again" in again.results[-1].text
    assert alarms(home) == []
    assert not any("judged" in each for each in (*first.notices, *again.notices))


def test_a_deferred_call_raises_no_alarm(claude: ClaudeSeat, home: Path) -> None:
    """Another hook defers it; the resumed session runs it."""
    claude.hook(RESULTS)
    other = claude.project / "other.sh"
    other.write_text("""
        test -e deferred && exit
        touch deferred
        echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}'
    """)
    hooks = json.loads(claude.settings.read_text())["hooks"]
    hooks["PreToolUse"].append({"hooks": [{"type": "command", "command": f"sh {other}"}]})
    claude.configure(hooks=hooks)
    first = claude.play(Say(calls=[bash("echo later")]))
    assert (claude.project / "deferred").exists()
    claude.play(Say("done"), prompt="", args=["--resume", first.session_id])
    assert alarms(home) == []
    assert claude.lines() == ["result"]
