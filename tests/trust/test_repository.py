"""The key of a project: worktrees share one, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_hooks.trust.repository import path_of_key, project_key
from trust.approving import agent_file, approve, git, state


def key(path: Path) -> str:
    """Return the key of a project."""
    return project_key(str(path))


@pytest.fixture
def repository(tmp_path: Path, home: Path) -> Path:
    """Give a repository with a commit."""
    path = tmp_path / "repository"
    agent_file(path)
    git("init", cwd=path)
    git("add", "-A", cwd=path)
    git("commit", "-m", "x", cwd=path)
    return path


def test_the_worktrees_of_a_repository_share_an_approval(repository: Path, tmp_path: Path) -> None:
    """Also those that git links by relative paths, and those of a bare repository; another clone asks anew."""
    git("worktree", "add", str(tmp_path / "linked"), cwd=repository)
    git("clone", "--bare", str(repository), str(tmp_path / "bare"), cwd=tmp_path)
    git("worktree", "add", str(tmp_path / "of-bare"), cwd=tmp_path / "bare")
    git("clone", str(repository), str(tmp_path / "clone"), cwd=tmp_path)
    assert key(repository) == key(tmp_path / "linked") == f"{repository}/.git//."
    assert key(tmp_path / "of-bare") == f"{tmp_path}/bare//."
    assert path_of_key(key(repository)) == str(repository)
    assert path_of_key(key(tmp_path / "of-bare")) is None
    approve(repository)
    assert state(tmp_path / "linked").state == "approved"
    assert state(tmp_path / "clone").state == "new"


def test_two_projects_of_a_repository_have_keys_of_their_own(repository: Path) -> None:
    """The path inside of the working tree belongs to the key."""
    assert key(repository / "a") == f"{repository}/.git//a"
    assert path_of_key(key(repository / "a")) == str(repository / "a")


def test_a_directory_that_names_a_repository_which_does_not_name_it_has_its_own_key(
    repository: Path, tmp_path: Path
) -> None:
    """An archive may hold any `.git`: only the repository itself says which worktrees it has."""
    git("worktree", "add", str(tmp_path / "linked"), cwd=repository)
    archive = tmp_path / "archive"
    archive.mkdir()
    worktree = repository / ".git" / "worktrees" / "linked"
    for target in (
        *(worktree, f"{worktree}/", "../repository/.git/worktrees/linked", repository / ".git"),
        *(
            repository / ".git" / "worktrees",
            f"{worktree}\0",
            f"{worktree}\ngitdir: x",
            "/dev/zero",
            "",
            "\0",
            "x" * 5000,
        ),
    ):
        (archive / ".git").write_text(f"gitdir: {target}\n")
        assert key(archive) == str(archive), target
    for text in (b"", b"gitdir:", b"gitdir: " + b"\xff" * 99, b"gitdir: .\n", b"\0" * 99, b"g" * 99_999):
        (archive / ".git").write_bytes(text)
        assert key(archive) == str(archive)


def test_a_worktree_made_by_an_archive_for_itself_has_a_key_inside_of_it(tmp_path: Path) -> None:
    """It may prove anything about a repository that it brings along."""
    archive = tmp_path / "archive"
    entry = archive / "fake" / "worktrees" / "x"
    entry.mkdir(parents=True)
    (archive / ".git").write_text("gitdir: fake/worktrees/x\n")
    (entry / "gitdir").write_text("../../../.git\n")
    (entry / "commondir").write_text("../..\n")
    assert key(archive) == f"{archive}/fake//."
    # The common directory of another repository cannot be named.
    other = tmp_path / "other"
    git("init", str(other), cwd=tmp_path)
    (entry / "commondir").write_text(f"{other}/.git\n")
    assert key(archive) == str(archive)


@pytest.mark.parametrize("name", ["commondir", "gitdir"])
def test_a_git_directory_that_shares_another_repository_has_a_key_of_its_own(
    repository: Path, tmp_path: Path, name: str
) -> None:
    """git itself would follow it."""
    archive = tmp_path / "archive"
    (archive / ".git").mkdir(parents=True)
    (archive / ".git" / name).write_text(f"{repository}/.git\n")
    assert key(archive) == str(archive)


def test_a_git_entry_that_is_a_link_a_fifo_or_a_device_has_a_key_of_its_own(repository: Path, tmp_path: Path) -> None:
    """A link would make any directory a copy of the other repository; a FIFO must not hang."""
    archive = tmp_path / "archive"
    archive.mkdir()
    for make in (
        lambda path: path.symlink_to(repository / ".git"),
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(".git"),
    ):
        make(archive / ".git")
        assert key(archive) == str(archive)
        (archive / ".git").unlink()


def test_the_environment_of_git_does_not_count(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client's settings may set it."""
    for name in ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES"):
        monkeypatch.setenv(name, str(repository / ".git"))
    assert key(tmp_path) == str(tmp_path)
    assert key(repository) == f"{repository}/.git//."


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    """Its `.git` names a directory in the outer repository, and an approval of the one is none of the other."""
    outer = tmp_path / "outer"
    git("init", str(outer), cwd=tmp_path)
    git("-c", "protocol.file.allow=always", "submodule", "add", str(repository), "sub", cwd=outer)
    assert key(outer / "sub") == str(outer / "sub")
    agent_file(outer)
    approve(outer)
    assert state(outer / "sub", outer).state == "approved"
    assert state(outer / "sub", outer / "sub").state == "new"


def test_a_moved_directory_asks_anew(project: Path, tmp_path: Path) -> None:
    """The approval belongs to the place as well."""
    agent_file(project)
    approve(project)
    project.rename(tmp_path / "moved")
    assert state(tmp_path / "moved").state == "new"
    (tmp_path / "moved").rename(project)
