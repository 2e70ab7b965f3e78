"""The instructions that the model gets from AGENTS.md and CLAUDE.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_hooks.host.instructions import LONGEST, Instructions
from running import Command


@pytest.fixture
def warned() -> list[str]:
    """Give the list that warnings go to."""
    return []


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a directory with an agent home and a project, both empty."""
    (tmp_path / "home").mkdir()
    (tmp_path / "project" / "part").mkdir(parents=True)
    return tmp_path


def instructions(place: Path, warned: list[str], cwd: str = "part") -> Instructions:
    """Return the instructions of an agent in a directory of the project."""
    top = place / "project"
    hide = lambda text: text.replace("s3cret", "[hidden]")  # noqa: E731
    return Instructions(str(place / "home"), str(top), str(top / cwd), hide, warned.append)


def test_the_files_of_the_person_and_of_each_directory_down_to_the_agent_are_read(
    place: Path, warned: list[str]
) -> None:
    """The person's come first; in one directory, AGENTS.md counts before CLAUDE.md."""
    (place / "home" / "AGENTS.md").write_text("be short")
    (place / "project" / "CLAUDE.md").write_text("use uv; s3cret")
    (place / "project" / "part" / "AGENTS.md").write_text("no globals")
    (place / "project" / "part" / "CLAUDE.md").write_text("@AGENTS.md")
    (place / "AGENTS.md").write_text("above the project")
    texts = instructions(place, warned).read()
    assert [text.partition("\n\n")[2] for text in texts] == ["be short", "use uv; [hidden]", "no globals"]
    assert texts[2].startswith(f"Instructions of {place}/project/part/AGENTS.md:")
    assert warned == []


def test_a_link_out_of_the_project_is_not_read(place: Path, warned: list[str]) -> None:
    """A project from elsewhere must not send a file of the person to the model."""
    (place / "key").write_text("private")
    (place / "project" / "AGENTS.md").symlink_to(place / "key")
    (place / "project" / "part" / "AGENTS.md").symlink_to("../real.md")
    (place / "project" / "real.md").write_text("of the project")
    reader = instructions(place, warned)
    assert [text.partition("\n\n")[2] for text in reader.read()] == ["of the project"]
    reader.read()
    assert warned == [f"{place}/project/AGENTS.md is a link out of {place}/project; the model does not get it"]


@pytest.mark.parametrize("secret", [".env", ".ssh/key", "deploy.pem"])
def test_a_link_to_a_secret_of_the_project_is_not_read(secret: str, place: Path, warned: list[str]) -> None:
    """The tool `read` is blocked for the same file."""
    path = place / "project" / secret
    path.parent.mkdir(exist_ok=True)
    path.write_text("PIN=4711")
    (place / "project" / "AGENTS.md").symlink_to(secret)
    assert instructions(place, warned).read() == []
    assert warned == [f"{place}/project/AGENTS.md is a link to {path}, which holds secrets; the model does not get it"]


@pytest.mark.parametrize("kind", ["fifo", "directory", "dangling"])
def test_a_file_that_cannot_be_read_is_named(kind: str, place: Path, warned: list[str]) -> None:
    """A FIFO does not hang the run either."""
    path = place / "project" / "AGENTS.md"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("gone")
    assert instructions(place, warned).read() == []
    assert len(warned) == 1
    assert str(path) in warned[0]


def test_a_long_file_is_cut_and_named(place: Path, warned: list[str]) -> None:
    """The model gets its beginning; bytes that are no UTF-8 do not matter."""
    (place / "project" / "AGENTS.md").write_bytes(b"\xff" + b"x" * LONGEST)
    (text,) = instructions(place, warned).read()
    assert text.endswith("x" * (LONGEST - 1))
    assert warned == [f"{place}/project/AGENTS.md has more than 32,768 bytes; the model gets these"]


def test_an_agent_outside_of_the_project_reads_its_own_directory_only(place: Path, warned: list[str]) -> None:
    """And a blank file adds nothing."""
    (place / "other").mkdir()
    (place / "project" / "AGENTS.md").write_text("theirs")
    (place / "other" / "AGENTS.md").write_text(" \n")
    assert instructions(place, warned, "../other").read() == []


def test_an_agent_does_not_write_the_instructions_of_the_person(command: Command, home: Path) -> None:
    """They would reach each later session, of every project; those of a project are a file like any other."""
    done = command(
        "run", "--no-session", "@bash echo 'never ask' > ~/.agent/AGENTS.md\n@bash echo 'use uv' > AGENTS.md"
    )
    assert not (home / ".agent" / "AGENTS.md").exists()
    assert "write-guard-settings" in done.stdout + done.stderr
    assert (command.project / "AGENTS.md").read_text() == "use uv\n"
