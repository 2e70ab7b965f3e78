"""The example of an embedded agent obeys approved hooks only, and its decisions are recorded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from running import Command
from support import ROOT
from trust.approving import approve

GATE = """
    from agent_hooks import Block
    def register(api):
        @api.on("tool_call", tool="bash")
        async def no_rm(event, ctx):
            return Block("deleting needs a person") if "rm -rf" in event.input["command"] else None
"""
BLOCKED = "rm -rf build → deleting needs a person (.agent/hooks/no_rm.py)"


@pytest.fixture
def gated(command: Command) -> Command:
    """Give the command line in a project with a gate that no person has approved, and a directory to remove."""
    command.trusted = False
    command.add_hook(GATE, "no_rm.py")
    (command.project / "build").mkdir()
    return command


def embedded(project: Path, code: int = 0) -> tuple[list[str], str]:
    """Run the example; return the lines of its output, and its messages."""
    program = [sys.executable, str(ROOT / "examples" / "embedded.py")]
    done = subprocess.run(program, cwd=project, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines(), done.stderr


def test_hooks_that_wait_are_named_and_left_out(gated: Command) -> None:
    """The person reads the remedy; the call runs."""
    lines, messages = embedded(gated.project)
    assert lines[1] == "echo hello → hello"
    assert "agent-hooks trust" in messages
    assert not (gated.project / "build").exists()


@pytest.mark.usefixtures("no_agent_around")
def test_approved_hooks_judge_and_the_decisions_are_recorded(gated: Command) -> None:
    """The records name the program, the hook and the reason."""
    approve(gated.project)
    lines, messages = embedded(gated.project)
    assert lines == [BLOCKED, "echo hello → hello"]
    assert messages == ""
    first, second = map(json.loads, gated("records", "--json").stdout.splitlines())
    assert (first["client"], first["verdict"], second["verdict"]) == ("embedded-example", "block", "pass")
    assert "deleting needs a person" in gated("why").stdout
    assert (gated.project / "build").exists()


def test_a_gate_that_was_removed_still_judges(gated: Command) -> None:
    """The approved bytes count; without them, no call runs."""
    approve(gated.project)
    shutil.rmtree(gated.project / ".agent")
    assert embedded(gated.project)[0][0] == BLOCKED
    shutil.rmtree(Path.home() / ".agent" / "trust")
    lines, messages = embedded(gated.project, code=1)
    assert lines == []
    assert "every tool call is blocked" in messages
