"""The files that are obeyed belong to this user or root, and no other user can write to them."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from agent_hooks.storage.rights import check_owner

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory that only this user can write to."""
    (tmp_path / "home of hooks").mkdir(mode=0o755)
    return tmp_path / "home of hooks"


def test_a_directory_of_this_user_alone_has_nothing_against_it(directory: Path) -> None:
    """Other users may read it."""
    assert check_owner(str(directory)) is None
    assert check_owner(str(directory / "missing")) is None


def test_a_directory_of_root_has_nothing_against_it() -> None:
    """Root can change each file anyway."""
    assert check_owner("/usr") is None


def test_a_directory_that_every_user_can_write_to_is_a_problem(directory: Path) -> None:
    """A sticky bit does not help, because another user can add a file."""
    for mode in (0o757, 0o1777):
        directory.chmod(mode)
        problem = check_owner(str(directory))
        assert problem == f"every user can write to {directory}; to mend it: chmod go-w '{directory}'"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_directory_of_another_user(directory: Path) -> None:
    """The text names the user and the command."""
    os.chown(directory, NOBODY.pw_uid, -1)
    assert check_owner(str(directory)) == (
        f"{directory} belongs to nobody; if it is yours: sudo chown -R root '{directory}'"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_group_with_other_members_may_write(directory: Path) -> None:
    """The primary group of another user has that user as a member, also if the group's entry is empty."""
    os.chown(directory, -1, NOBODY.pw_gid)
    directory.chmod(0o775)
    problem = check_owner(str(directory))
    assert problem is not None
    assert problem.startswith(f"the group {grp.getgrgid(NOBODY.pw_gid).gr_name} (")
    assert "nobody" in problem
    assert problem.endswith(f"can write to {directory}; to mend it: chmod g-w '{directory}'")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_group_that_only_this_user_is_in_may_write(directory: Path) -> None:
    """A umask of 002 with a group for each user is the default of many systems."""
    os.chown(directory, -1, 0)
    directory.chmod(0o775)
    others = [user for user in pwd.getpwall() if user.pw_gid == 0 and user.pw_uid != 0]
    assert (check_owner(str(directory)) is None) is (not others and not set(grp.getgrgid(0).gr_mem) - {"root"})
    unknown = next(number for number in range(60000, 70000) if number not in {each.gr_gid for each in grp.getgrall()})
    os.chown(directory, -1, unknown)
    assert f"the unknown group {unknown} can write" in (check_owner(str(directory)) or "")


def test_a_path_that_cannot_be_examined_has_a_reason(tmp_path: Path) -> None:
    """No answer is no permission."""
    (tmp_path / "file").write_text("")
    assert check_owner(str(tmp_path / "file" / "below")) == f"{tmp_path}/file/below cannot be examined: Not a directory"
