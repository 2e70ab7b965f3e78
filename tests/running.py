"""The command line, run as a user does."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from textwrap import dedent


class Command:
    """Runs `agent-hooks` as a user does: a process of its own, in the project, with an empty home."""

    def __init__(self, project: Path) -> None:
        self.project = project

    def __call__(self, *args: str, stdin: str = "", code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run it to its end and check the exit code; `code=None` takes any."""
        done = subprocess.run(
            [sys.executable, "-m", "agent_hooks", *args],
            cwd=self.project,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def on_terminal(self, *args: str) -> str:
        """Run it to its end on a terminal of 100 columns, and return what that was sent."""
        ours, theirs = pty.openpty()
        run = subprocess.Popen(
            [sys.executable, "-m", "agent_hooks", *args],
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(theirs)
        seen = read_all(ours)
        assert run.wait(timeout=30) == 0
        return seen

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start it, for a test that sends signals."""
        return subprocess.Popen(
            [sys.executable, "-m", "agent_hooks", *args],
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def add_hook(self, source: str, name: str = "hook.py") -> Path:
        """Put a hook file into the project."""
        path = self.project / ".agent" / "hooks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))
        return path


def read_all(fd: int) -> str:
    """Return what a terminal was sent until its other end closed."""
    seen = b""
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:  # how Linux says that the other end is closed
            chunk = b""
        if not chunk:
            os.close(fd)
            return seen.decode()
        seen += chunk
