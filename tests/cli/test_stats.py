"""`agent-hooks stats` shows how each hook did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from running import Command

GATE = """
from agent_hooks import Block

def register(api):
    @api.on("tool_call", tool="bash")
    def gate(event, ctx):
        if "curl" in event.input["command"]:
            return Block("no")
"""
IDLE = """
def register(api):
    api.on("tool_call", lambda event, ctx: None, tool="write")
"""


def test_stats_counts_the_steps_of_each_hook(command: Command, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a table, as JSON, since a time; below an agent it refuses."""
    empty = command("stats")
    assert empty.stdout.strip() == "no hook has judged a call yet"
    for name, text in (("gate.py", GATE), ("idle.py", IDLE)):
        (project / name).write_text(text)
    command("run", "--hook", "gate.py", "--hook", "idle.py", "@bash curl x\n@bash true")
    table = command("stats").stdout
    assert [line.split()[:3] for line in table.splitlines() if "gate.py" in line] == [["gate.py", "2", "1"]]
    assert "never ran: idle.py" in table
    rows = [json.loads(line) for line in command("stats", "--json").stdout.splitlines()]
    gate = next(row for row in rows if row["hook"].endswith("gate.py"))
    assert (gate["judged"], gate["stopped"], gate["neverRan"]) == (2, 1, False)
    assert 0 < gate["p50"] <= gate["p99"]
    assert command("stats", "--since", "2999-01-01").stdout.strip() == "no hook has judged a call yet"
    monkeypatch.setenv("CLAUDECODE", "1")
    refused = command("stats", code=None)
    assert refused.returncode != 0
    assert "below an agent" in refused.stderr or "agent" in refused.stderr
