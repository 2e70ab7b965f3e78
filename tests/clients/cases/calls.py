"""Calls of a tool: blocked, rewritten, with context; hook files that fail or that no person approved."""

from __future__ import annotations

import re
from pathlib import Path

from clients.cases.table import case, told
from clients.script import Calls, Shell, Text
from clients.seat import Seat


@case("sees every event once, in order", "observe", models=True, core=True)
def observe(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo one; touch made")
    assert seat.has("made"), run.output[-2000:]
    found = [line["event"] for line in seat.log() if line["agent"] == "main"]
    wanted = ["session start", "agent_start", "tool_call", "tool_result", "agent_end"]
    assert [event for event in found if event in wanted] == wanted, found
    assert found.count("session shutdown") <= 1, found
    calls = [line["id"] for line in seat.log() if line["event"] in ("tool_call", "tool_result")]
    assert len(set(calls)) == 1, calls
    return True


@case("blocks a call", "block", models=True, core=True, together=True)
def block(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo deploy; touch denied-block", "touch fine-block")
    assert not seat.has("denied-block")
    assert seat.has("fine-block"), run.output[-2000:]
    told(run, "deploying is for people")
    return True


@case("the guards come along", models=True, together=True)
def guards(seat: Seat) -> bool:
    seat.ready()
    (seat.project / "kept").mkdir()
    run = seat.shell("rm -rf kept ~", "touch fine-guards")
    assert seat.has("kept")
    assert seat.has("fine-guards")
    told(run, "builtin:")
    return True


@case("a hook that raises denies, by name")
def raises(seat: Seat) -> bool:
    seat.add_hook("broken.py", "def register(api):\n    api.on('tool_call', lambda event, ctx: 1 / 0)\n")
    return _denies_by_name(seat)


@case("a hook file that does not load denies, by name")
def unloadable(seat: Seat) -> bool:
    seat.add_hook("broken.py", "def register(api:\n")
    return _denies_by_name(seat)


def _denies_by_name(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("touch made")
    assert not seat.has("made")
    assert "broken.py" in "\n".join(run.results) + run.output
    return True


@case("a project's hook that no person approved does not run; the guards do")
def untrusted(seat: Seat) -> bool:
    seat.add_hook("theirs.py", "def register(api):\n    open('it-ran', 'w')\n")
    seat.client.install()
    (seat.project / "kept").mkdir()
    run = seat.shell("touch fine", "rm -rf kept ~")
    assert not seat.has("it-ran")
    assert seat.has("fine"), run.output[-2000:]
    assert seat.has("kept")
    return True


@case("rewrites a call", "rewrite", models=True, together=True)
def rewrite(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo npm install > ran; cat ran")
    ran = (seat.project / "ran").read_text() if seat.has("ran") else ""
    assert ran in ("", "npm ci\n"), ran
    told(run, "npm ci")
    return ran == "npm ci\n"


@case("a rewrite into a command that a guard blocks does not run", models=True, together=True)
def rewrite_denied(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("tidy-home; touch denied-rewrite_denied", "touch fine-rewrite_denied")
    assert not seat.has("denied-rewrite_denied")
    assert seat.has("fine-rewrite_denied")
    assert Path(seat.client.home).exists()
    assert re.search("rm -rf|builtin:", "\n".join(run.results))
    return True


@case("adds context to a call", "context_before", models=True, together=True)
def context_before(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo migrate")
    return "read MIGRATIONS.md" in run.context


@case("parallel calls are judged one by one", models=True)
def parallel(seat: Seat) -> bool:
    seat.ready()
    calls = Calls(Shell("touch one"), Shell("echo deploy; touch two"), Shell("touch three"))
    run = seat.run(calls, Text("done"))
    assert seat.has("one"), run.output[-2000:]
    assert not seat.has("two")
    assert seat.has("three")
    ids = [line["id"] for line in seat.log() if line["event"] == "tool_result"]
    assert len(ids) == len(set(ids)) == 2, ids
    return True
