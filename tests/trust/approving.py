"""Projects with files to approve, and the person's yes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

import forking
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.open_sessions import OpenSession
from agent_hooks.trust.policy import ProjectTrust, Trust
from running import Command

GATE = "def register(api): ...\n"


def agent_file(project: Path, name: str = "hooks/gate.py", text: str | bytes = GATE) -> Path:
    """Write a file below the `.agent` of a project."""
    path = project / ".agent" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def unapproved(project: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return the command line, without a terminal, in a project with a hook that nobody has approved."""
    agent_file(project)
    monkeypatch.setenv(forking.NO_TERMINAL, "1")
    found = Command(project)
    found.trusted = False
    return found


def judged_session() -> OpenSession:
    """Return an open session of an agent, which is this process."""
    found = OpenSession("claude-code", "s")
    found.seen(os.getpid())
    return found


def signs(home: Path) -> list[Path]:
    """Return the files of all sessions."""
    return list((home / ".agent" / "trust" / "open").iterdir())


def age(home: Path, seconds: float) -> None:
    """Let the last signs of all sessions be so old."""
    for path in signs(home):
        os.utime(path, (time.time() - seconds,) * 2)


def approve(project: Path, by: str = "trust") -> str:
    """Approve the files of a project as they are, and return the digest of the set."""
    store = Trust().store()
    found = read_set(os.path.realpath(project))
    return store.approve(store.key(found.project), found, by=by).digest


def state(cwd: Path, project: Path | None = None) -> ProjectTrust:
    """Return the decision about a project as seen from a directory, by default the only project there."""
    projects = Trust().sources(cwd).projects
    if project is None:
        [only] = projects
        return only
    [found] = [each for each in projects if each.project == os.path.realpath(project)]
    return found


def judged_names(found: ProjectTrust) -> set[str]:
    """Return the names of the files that count, relative to the project."""
    return {os.path.relpath(path, found.project) for path in found.files or ()}


def git(*args: str, cwd: Path) -> None:
    """Run git, as a person does."""
    identity = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "init.defaultBranch=main",
    )
    subprocess.run(["git", *identity, *args], cwd=cwd, check=True, capture_output=True, timeout=60)
