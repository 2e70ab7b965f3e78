"""Kills at random moments, of a process that approves sets or writes sessions: each state that is left is a whole one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from agent_hooks.errors import SessionError
from agent_hooks.host.session import Session
from agent_hooks.trust.policy import Trust
from support import PATIENCE, first_line
from trust.approving import approve, state

FEW, MANY = 5, 60
# Each loops until it is killed; `begins` is printed when the first change is done.
APPROVING = """
import itertools, sys
from pathlib import Path
from trust.approving import approve

project = Path(sys.argv[1])
for number in itertools.count(1):
    for name in "abc":
        path = project / ".agent" / "hooks" / f"{name}.py"
        path.write_text(f"# {number}\\n" * 2000 + "def register(api): ...\\n")
    approve(project)
    if number == 1:
        print("begins", flush=True)
"""
WRITING = """
import sys
from agent_hooks.host.session import Session

while True:
    session = Session.create(sys.argv[1], home=sys.argv[1])
    for number in range(50):
        session.add_thinking_level(f"{number} " + "x" * 3000)
    session.close()
    print("begins", flush=True)
"""


def kill(program: str, project: Path, seconds: float) -> None:
    """Run a program, and kill it so long after its first change."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    line = [sys.executable, "-c", program, str(project)]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, env=environment)
    assert child.stdout is not None
    assert first_line(child.stdout) == b"begins\n"
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    child.stdout.close()
    assert child.wait(timeout=PATIENCE) == -signal.SIGKILL


def check_approvals(project: Path) -> None:
    """Check that the store can be read, that the bytes of the approved set are whole, and that no rest stays."""
    store = Trust().store()
    assert store.problem is None
    [entry] = store.entries.values()
    approved = entry.approved[-1]
    kept = store.kept_files(os.path.realpath(project), approved)
    assert kept is not None, "the approved bytes are gone or cut"
    assert len({file.data for file in kept.values()}) == 1
    assert state(project).state in ("approved", "changed")
    approve(project)
    assert state(project).state == "approved"
    named = {each.digest for each in next(iter(Trust().store().entries.values())).approved}
    assert set(os.listdir(os.path.join(store.kept, "sets"))) == named


def check_sessions(project: Path) -> None:
    """Check that each session opens with the entries that were written, in their order, and that git ignores all."""
    directory = project / ".agent" / "sessions"
    assert (directory / ".gitignore").read_text() == "*\n"
    for path in directory.glob("*.jsonl"):
        try:
            session = Session.open(path, str(project), home=str(project))
        except SessionError as exc:
            raise AssertionError(path.read_bytes()[-200:]) from exc
        levels = [getattr(entry, "thinking_level", None) for entry in session.entries[1:]]
        assert levels == [f"{number} " + "x" * 3000 for number in range(len(levels))]
        session.close()
    shutil.rmtree(directory)


def kill_often(project: Path, times: int, seed: int) -> None:
    """Kill an approval and a session write at random moments."""
    (project / ".agent" / "hooks").mkdir(parents=True)
    random = Random(seed)
    for _ in range(times):
        kill(APPROVING, project, random.uniform(0, 0.1))
        check_approvals(project)
        kill(WRITING, project, random.uniform(0, 0.05))
        check_sessions(project)


def test_a_killed_approval_or_session_is_whole(project: Path) -> None:
    """A sample."""
    kill_often(project, FEW, seed=1)


@pytest.mark.slow
def test_approvals_and_sessions_that_are_killed_many_times_are_whole(project: Path) -> None:
    """At random moments."""
    kill_often(project, MANY, seed=2)
