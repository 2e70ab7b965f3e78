"""Whether a user starts a session of another agent, by the processes and the sessions that are open."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_hooks.cli.starting import is_users_start
from agent_hooks.trust.open_sessions import OpenSession

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="the processes are read from /proc")


def sign_of(session: str, process: int | None) -> OpenSession:
    """Return the sign of a session that has just begun."""
    sign = OpenSession("claude-code", session)
    sign.seen(process)
    return sign


def test_a_start_without_a_terminal_counts_only_alone(home: Path) -> None:
    """A session that is open or recent may have started it."""
    sign = sign_of("one", os.getpid())
    assert is_users_start(os.getpid(), sign, at_terminal=False)
    sign_of("two", None)
    assert not is_users_start(os.getpid(), sign, at_terminal=False)
    assert is_users_start(os.getpid(), sign, at_terminal=True)


def test_a_process_that_has_a_session_starts_no_other_one(home: Path) -> None:
    """An agent can say at any time that a session begins."""
    sign_of("one", os.getpid())
    assert not is_users_start(os.getpid(), sign_of("two", os.getpid()), at_terminal=True)


def test_below_an_agent_no_user_starts_a_session(home: Path) -> None:
    """One agent may consist of several processes, but a shell between two agents belongs to a tool."""
    line = "exec -a claude bash -c 'bash -c \"sleep 60 & echo \\$!; wait\"; :'"
    with subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE, text=True, start_new_session=True) as shell:
        assert shell.stdout is not None
        process = int(shell.stdout.readline())
        try:
            assert not is_users_start(process, sign_of("one", process), at_terminal=True)
            assert is_users_start(shell.pid, sign_of("two", shell.pid), at_terminal=True)
        finally:
            os.killpg(shell.pid, 15)
