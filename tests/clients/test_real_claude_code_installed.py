"""Installations in the real Claude Code: shared files, two files, missing events, and what `doctor` finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clients.claude_seat import ClaudeSeat, bash
from model_server import Say
from running import write_shared_command

pytestmark = pytest.mark.client


GATE = """
    from agent_hooks import Block

    def register(api):
        @api.on("tool_call", tool="bash")
        def gate(event, ctx):
            return Block("as ever") if "gated" in event.input["command"] else None
"""


def test_a_shared_project_finds_the_command_on_the_path(claude: ClaudeSeat, home: Path, tmp_path: Path) -> None:
    """`--project` writes no path of this machine into a committed file; without the command, calls are denied."""
    claude.add_hook("gate.py", GATE)
    claude.install("--project")
    settings = (claude.project / ".claude/settings.json").read_text()
    assert sys.prefix not in settings
    path = {"PATH": f"{write_shared_command(tmp_path / 'bin', home)}{os.pathsep}{os.environ['PATH']}"}
    run = claude.play(Say(calls=[bash("touch gated")]), Say("done"), environment=path)
    assert "as ever" in run.results[0].text
    without = claude.play(prompt="go", environment={"PATH": "/usr/bin:/bin"})
    assert without.requests == []
    assert "agent-hooks" in without.answer


COUNT = """
    def register(api):
        @api.on("tool_call")
        def count(event, ctx):
            with open("count", "a") as file:
                file.write("x")
"""


@pytest.mark.parametrize(("target", "times"), [("--local", "x"), ("--project", "xx")])
def test_one_command_in_two_files_runs_once_and_two_commands_twice(
    claude: ClaudeSeat, home: Path, tmp_path: Path, target: str, times: str
) -> None:
    """The warnings of `install` and `doctor` rely on this."""
    claude.add_hook("count.py", COUNT)
    environment = {"PATH": f"{write_shared_command(tmp_path / 'bin', home)}{os.pathsep}{os.environ['PATH']}"}
    claude.install("--user")
    warned = claude.install(target)
    claude.play(Say(calls=[bash("true")]), Say("done"), environment=environment)
    assert (claude.project / "count").read_text() == times
    assert ("fire twice" in warned) == (times == "xx")


def test_a_hook_that_waits_in_vain_is_told_to_the_person(claude: ClaudeSeat) -> None:
    """The message has the command that installs the missing event."""
    claude.install()
    claude.add_hook("waits.py", "def register(api):\n    api.on('turn_end', lambda event, ctx: open('ended', 'w'))")
    run = claude.play(Say(calls=[bash("true")]), Say("done"))
    remedy = "agent-hooks install claude-code --local"
    told = f"agent_hooks: PostToolBatch, which turn_end needs, is not installed: {remedy}"
    # On a terminal, this output of the hook is on the screen.
    assert told in json.dumps(run.messages)
    assert not (claude.project / "ended").exists()
    claude.install()
    claude.play(Say(calls=[bash("true")]), Say("done"))
    assert (claude.project / "ended").exists()


def test_the_doctor_sees_a_real_installation(claude: ClaudeSeat) -> None:
    """The version is the tested one, and the installation works."""
    claude.install()
    environment = {**os.environ, "PATH": f"{claude.client.program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "agent_hooks", "doctor", "claude-code"],
        cwd=claude.project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "which this was tested with" in done.stdout
    assert "PreToolUse: answered in" in done.stdout
    assert "WARNING" not in done.stdout
