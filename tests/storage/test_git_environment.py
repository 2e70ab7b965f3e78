"""A git call works on the repository that it is meant for, and runs no program of that repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_hooks.installs.git_ignore import how_to_ignore
from agent_hooks.storage.git import git_environment


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a new repository."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "it")], check=True, env=git_environment())
    return tmp_path / "it"


def test_only_settings_of_the_person_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of one git call misleads another."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/mine")
    found = {name: value for name, value in git_environment().items() if name.startswith("GIT_")}
    assert found.pop("GIT_CONFIG_GLOBAL") == "/mine"
    assert set(found) == {"GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT", "GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL"}


def test_the_repository_of_the_caller_does_not_mislead(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`agent-hooks install` may run in a hook of git, which has GIT_DIR set."""
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    command = how_to_ignore(str(repository / "settings.local.json"))
    assert command == f"echo 'settings.local.json*' >> {repository}/.git/info/exclude"


def test_a_program_that_the_repository_names_does_not_run(repository: Path, tmp_path: Path) -> None:
    """A file system monitor is such a program."""
    (repository / "monitor").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (repository / "monitor").chmod(0o755)
    (repository / "file").write_text("")
    for args in (["add", "file"], ["config", "core.fsmonitor", str(repository / "monitor")]):
        subprocess.run(["git", *args], cwd=repository, check=True, env=git_environment())
    command = how_to_ignore(str(repository / "file"))
    assert command is not None
    assert command.startswith(f"git -C {repository} rm --cached")
    assert not (tmp_path / "ran").exists()
