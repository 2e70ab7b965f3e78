"""Rights of files that git does not keep: a file that others could not read stays so."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from agent_hooks import checkpoints
from agent_hooks.turn_notes import store_of
from working import Agent, repository, undo

pytestmark = pytest.mark.anyio


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository with a private key, a private script and a file for all."""
    repository(project)
    (project / "key").write_text("secret\n")
    (project / "key").chmod(0o600)
    (project / "script").write_text("#!/bin/sh\n")
    (project / "script").chmod(0o750)
    (project / "shared").write_text("for all\n")
    (project / "shared").chmod(0o644)
    return project


def rights(*paths: Path) -> list[str]:
    """Return the rights of files."""
    return [oct(path.stat().st_mode & 0o777) for path in paths]


async def test_a_deleted_file_has_its_rights_again(repo: Path) -> None:
    """A key is never open to others; an open file is as open as a new one."""
    await Agent(repo).turn("clean", "rm key script shared")
    await undo(repo)
    assert rights(repo / "key", repo / "script", repo / "shared") == ["0o600", "0o750", oct(0o666 & ~umask())]


async def test_rights_that_changed_alone_are_known(repo: Path) -> None:
    """The content was saved before, while the file was open to all; git tells times of status by the second."""
    await Agent(repo).turn("one", "touch made")
    first = int((repo / "shared").stat().st_ctime)
    # The clock of the file system may be some milliseconds behind that of the process.
    while int((repo / "shared").stat().st_ctime) == first:
        await anyio.sleep(0.02)
        (repo / "shared").chmod(0o640)
    await Agent(repo).turn("two", "rm shared")
    await undo(repo)
    assert rights(repo / "shared") == ["0o640"]


async def test_an_open_file_in_the_place_of_a_private_one_opens_nothing(repo: Path) -> None:
    """An agent often writes another file and renames it; a later edit beside is private too."""
    agent = Agent(repo)
    await agent.turn("one", "echo new > k; chmod 644 k; mv k key")
    (repo / "key").write_text("by hand\n")
    await agent.turn("two", "echo newer > k; chmod 644 k; mv k key")
    done = await undo(repo, 2)
    assert (repo / "key").read_text() == "secret\n"
    assert [each.path for each in done.kept] == ["key"]
    assert rights(repo / "key") == ["0o600"]


@pytest.mark.parametrize("damage", ["gone", "damaged"])
async def test_a_file_whose_rights_are_not_known_is_private(repo: Path, damage: str) -> None:
    """They are known again from the next turn on."""
    agent = Agent(repo)
    await agent.turn("one", "rm shared")
    path = Path(store_of(str(repo)), "rights")
    path.write_bytes(b"{")
    if damage == "gone":
        path.unlink()
    await undo(repo)
    assert rights(repo / "shared") == ["0o600"]
    (repo / "open").touch()
    await agent.turn("two", "rm open key")
    await undo(repo)
    assert rights(repo / "open", repo / "key") == [oct(0o666 & ~umask()), "0o600"]


async def test_a_restore_keeps_a_key_private(repo: Path) -> None:
    """So does the undo of it."""
    saved = await checkpoints.create(repo, "s", 1)
    (repo / "key").unlink()
    await checkpoints.restore(repo, saved)
    assert rights(repo / "key") == ["0o600"]


def umask() -> int:
    """Return the rights that a new file does not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
