"""The place of one scenario: a home and a project that are the same before each kill, and commands that run there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

# Seconds that a command may take.
PATIENCE = 120
_IDENTITY = {"GIT_AUTHOR_NAME": "p", "GIT_AUTHOR_EMAIL": "p@example.com"}


class Place:
    """A home and a project below `directory`, which is removed first.

    `keep` notes their present state, and `reset` brings it back.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "now" / "home"
        self.project = directory / "now" / "project"
        shutil.rmtree(directory, ignore_errors=True)
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TMPDIR": str(directory),
            # The bytecode of hooks is written once, outside of the state that the kills are about.
            "XDG_CACHE_HOME": str(directory / "cache"),
            **_IDENTITY,
            **{name.replace("AUTHOR", "COMMITTER"): value for name, value in _IDENTITY.items()},
        }

    def keep(self) -> None:
        """Note the present state."""
        shutil.rmtree(self.directory / "kept", ignore_errors=True)
        shutil.copytree(self.directory / "now", self.directory / "kept", symlinks=True)

    def reset(self) -> None:
        """Bring the noted state back."""
        shutil.rmtree(self.directory / "now")
        shutil.copytree(self.directory / "kept", self.directory / "now", symlinks=True)

    def git(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run git in the project."""
        return self._run(["git", *args])

    def agent_hooks(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run `agent-hooks` in the project, to its end."""
        return self._run(self.line(*args))

    def line(self, *args: str) -> list[str]:
        """Return the command line of `agent-hooks`."""
        return [sys.executable, "-m", "agent_hooks", *args]

    def _run(self, line: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            line, cwd=self.project, env=self.environment, capture_output=True, text=True, timeout=PATIENCE
        )

    def traced(self, line: list[str], trace: Path, *inject: str) -> int:
        """Run a command under strace, with its system calls in `trace`; return the exit code."""
        strace = ["strace", "-f", "-qq", "-e", f"trace={','.join(WRITES)}", "-o", str(trace), *inject]
        return self._run([*strace, *line]).returncode

    def killed(self, line: list[str], after: float) -> None:
        """Run a command, and kill it and its children after so many seconds."""
        process = subprocess.Popen(
            line,
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def duration(self, line: list[str]) -> float:
        """Run a command to its end and return its seconds."""
        began = time.monotonic()
        self._run(line)
        return time.monotonic() - began


WRITES = (
    *("write", "pwrite64", "writev", "ftruncate", "fsync", "fdatasync", "fchmod", "chmod"),
    *("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat"),
    *("unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
)
"""The system calls that change files, at each of which a process is killed."""
