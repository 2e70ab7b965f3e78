"""The command line, run as a user does."""

from __future__ import annotations

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
