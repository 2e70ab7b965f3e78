"""The programs that this package runs for itself are never those of a project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_hooks.storage.programs import find_program, system_program, tree_of


def program(directory: Path, name: str = "git") -> str:
    """Put a program into a directory and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text("#!/bin/sh\n")
    (directory / name).chmod(0o755)
    return str(directory / name)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with a `.git`, and go into a directory of it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for each in ("project/.git", "project/src", "home"):
        (tmp_path / each).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "src")
    return tmp_path / "project"


def test_entries_that_are_relative_empty_or_in_the_project_are_skipped(project: Path, tmp_path: Path) -> None:
    """The first program outside of the project counts."""
    for each in (project / "src", project / "bin", project / ".venv" / "bin"):
        program(each)
    own = program(tmp_path / "tools")
    path = f".::../bin:{project}/bin:{project}/.venv/bin:{tmp_path}/tools"
    assert find_program("git", outside=os.getcwd(), path=path) == own
    assert find_program("git", outside=os.getcwd(), path=f"{project}/bin:") is None


def test_a_link_into_the_project_is_skipped(project: Path, tmp_path: Path) -> None:
    """The link may be the directory's or the program's, and may lead out of the project or into it."""
    theirs = program(project / "bin")
    own = program(tmp_path / "tools")
    (tmp_path / "linked").symlink_to(project / "bin")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "git").symlink_to(theirs)
    (project / "out").symlink_to(tmp_path / "tools")
    path = f"{tmp_path}/linked:{tmp_path}/links:{project}/out:{tmp_path}/tools"
    assert find_program("git", outside=str(project), path=path) == own


def test_a_directory_and_a_file_without_rights_are_no_programs(tmp_path: Path) -> None:
    """The next entry counts."""
    (tmp_path / "one" / "git").mkdir(parents=True)
    Path(program(tmp_path / "two")).chmod(0o644)
    own = program(tmp_path / "three")
    assert find_program("git", outside=None, path=f"{tmp_path}/one:{tmp_path}/two:{tmp_path}/three") == own


def test_the_tree_of_a_directory_is_the_outermost_working_tree(project: Path) -> None:
    """A nested repository is a part of the project; without git, the directory itself is the project."""
    inner = project / "vendor" / "inner"
    (inner / ".git").mkdir(parents=True)
    assert tree_of(str(inner)) == str(project)
    (project / ".git").rmdir()
    assert tree_of(str(inner)) == str(inner)
    assert tree_of(str(project / "src")) == str(project / "src")


def test_the_home_directory_is_no_project(project: Path, tmp_path: Path) -> None:
    """Programs in `~/.local/bin` count, also if the home directory is a working tree or the working directory."""
    home = tmp_path / "home"
    (home / ".git").mkdir()
    own = program(home / ".local" / "bin")
    for directory in (home, tmp_path, home / "new"):
        assert find_program("git", outside=str(directory), path=os.path.dirname(own)) == own
    assert tree_of(str(home)) is None
    assert tree_of("/") is None


def test_programs_of_the_system_belong_to_no_project() -> None:
    """The working directory may be `/usr`."""
    assert find_program("env", outside="/usr", path="/usr/bin") == "/usr/bin/env"
    assert system_program("env") == "/usr/bin/env"
    assert system_program("no-such-program") is None
