"""Whether a person is at another agent: its own process tells, where its hooks cannot know."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_hooks.bridges.base.installation import PROCESS
from agent_hooks.bridges.claude_code import ClaudeCode
from agent_hooks.bridges.gemini_cli import GeminiCli
from agent_hooks.cli import opening as attending
from agent_hooks.cli.opening import is_attended

GEMINI = GeminiCli()


@pytest.fixture
def terminal() -> Iterator[int]:
    """A real terminal."""
    leader, follower = pty.openpty()
    yield follower
    os.close(leader)
    os.close(follower)


def attended(*arguments: str, stdin: int, stdout: int, **environment: str) -> bool:
    """Return whether a person is at a program with these arguments and ends."""
    program = "print('ready', file=sys.stderr); sys.stderr.flush(); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys, time; {program}", *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        return is_attended(GEMINI, {PROCESS: str(process.pid), **environment})
    finally:
        process.kill()
        process.communicate()


def test_a_person_is_at_a_program_in_a_terminal(terminal: int) -> None:
    """Both ends are the terminal, and no argument asks for an answer without a person."""
    assert attended("-y", "a prompt", stdin=terminal, stdout=terminal)


def test_no_person_is_at_a_program_that_no_terminal_reads_or_writes(terminal: int) -> None:
    """A question would be waited for, for ever."""
    assert not attended("-p", "a prompt", stdin=terminal, stdout=terminal)
    assert not attended("--prompt", "a prompt", stdin=terminal, stdout=terminal)
    assert not attended(stdin=subprocess.DEVNULL, stdout=terminal)
    assert not attended(stdin=terminal, stdout=subprocess.DEVNULL)
    assert not attended(stdin=terminal, stdout=terminal, CI="true")


def test_without_a_known_process_no_person_is_there() -> None:
    """The process may have ended, and an entry of another version does not tell its id."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    for process in ("", "x", "-1", str(ended.pid)):
        assert not is_attended(GEMINI, {PROCESS: process})


def test_an_agent_that_answers_itself_needs_no_process() -> None:
    """Its bridge knows."""
    assert is_attended(ClaudeCode(), {})
    assert not is_attended(ClaudeCode(), {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"})


TTY = "p1\nf0\nn/dev/ttys003\nf1\nn/dev/ttys003"


@pytest.mark.parametrize(
    ("ends", "arguments", "expected"),
    [
        (TTY, "node gemini -y hello", True),
        (TTY, "node gemini -p hello", False),
        (TTY, "", False),
        ("p1\nf0\nn/dev/null\nf1\nn/dev/ttys003", "node gemini", False),
        ("p1\nf0\nn->0x1234\nf1\nn/dev/ttys003", "node gemini", False),
        ("p1\nf0\nn/dev/ttys003", "node gemini", False),
        ("", "node gemini", False),
    ],
)
def test_lsof_and_ps_tell_where_there_is_no_proc(
    ends: str, arguments: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS; what they do not tell counts as no person."""
    monkeypatch.setattr(attending, "_PROC", str(tmp_path / "proc"))
    for name, text in (("lsof", ends), ("ps", arguments)):
        program = tmp_path / name
        (tmp_path / f"{name}.txt").write_text(f"{text}\n")
        program.write_text(f'#!/bin/sh\ncat "{program}.txt"\n')
        program.chmod(0o755)
        monkeypatch.setattr(attending, f"_{name.upper()}", str(program))
    assert is_attended(GEMINI, {PROCESS: "1"}) == expected
    monkeypatch.setattr(attending, "_LSOF", str(tmp_path / "gone"))
    assert not is_attended(GEMINI, {PROCESS: "1"})
