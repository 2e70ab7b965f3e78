"""Events that the real Claude Code sends by HTTP, which decide nothing."""

from __future__ import annotations

import json

import pytest

from clients.claude_seat import ClaudeSeat, bash
from model_server import Say

pytestmark = pytest.mark.client


def install_http(claude: ClaudeSeat) -> None:
    """Install events by HTTP; git has to leave the file out, because the port and a token are in it."""
    (claude.project / ".git/info/exclude").write_text("settings.local.json*\n")
    claude.install("--http")


TURNS = """
    import os
    from agent_hooks import ForeignEvent

    def register(api):
        log = open("log", "a", buffering=1)

        @api.on("turn_end")
        def turn(event, ctx):
            print(os.getpid(), file=log)
            api.send(f"heard in process {os.getpid()}")
"""
ALSO_FOREIGN = """
        @api.intercept("event")
        def other(input, output):
            if isinstance(input.event, ForeignEvent):
                print(input.event.name, file=log)
"""


def test_what_decides_nothing_is_heard_by_http(claude: ClaudeSeat) -> None:
    """The same hooks answer it, in the session that commands opened, and the model gets their texts."""
    claude.add_hook("turns.py", TURNS + ALSO_FOREIGN)
    install_http(claude)
    task = {"description": "x", "prompt": "look", "subagent_type": "general-purpose", "run_in_background": False}
    run = claude.play(Say(calls=[("Agent", task)]), Say("looked"), Say("done"))
    (server,) = claude.client.servers()
    assert claude.lines() == ["SubagentStart", str(server)]
    assert f"heard in process {server}" in run.context


def test_a_dead_server_loses_what_decides_nothing_and_nothing_else(claude: ClaudeSeat) -> None:
    """The next command starts another server, which listens at the same port."""
    claude.add_hook("turns.py", TURNS)
    # With redaction, the command of PostToolUse would start another server first.
    without = {"redaction": {"enabled": False}}
    (claude.project / ".agent/settings.json").write_text(json.dumps(without))
    install_http(claude)
    (claude.project / "crash.sh").write_text("kill -9 $(tail -n 1 log)")
    crash = bash("sh crash.sh; echo killed")
    run = claude.play(*(Say(calls=[call]) for call in (bash("true"), crash, bash("true"))), Say("done"))
    assert [result.is_error for result in run.results] == [False] * 3
    first, second = claude.lines()  # of three turns
    assert claude.client.servers() == [int(second)]
    assert first != second
    assert run.answer == "done"
