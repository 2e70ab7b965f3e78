"""Only regular files are opened, and a file is replaced in one step."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from agent_hooks.storage.files import StorageError, check_regular, open_regular, others_may_read, write_atomically


def mode(path: Path) -> int:
    """Return the rights of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_fifo_is_not_opened(tmp_path: Path) -> None:
    """Opening it would wait for a writer."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="pipe is a FIFO, not a regular file"):
        open_regular(str(tmp_path / "pipe"), "pipe")


def test_a_directory_is_not_opened(tmp_path: Path) -> None:
    """The error says how a directory is read."""
    with pytest.raises(StorageError, match="use ls"):
        open_regular(str(tmp_path), "here")


def test_a_missing_file_is_named_as_the_caller_shows_it(tmp_path: Path) -> None:
    """The absolute path stays out of the error."""
    with pytest.raises(StorageError, match=r"^cannot read gone: No such file or directory$"):
        open_regular(str(tmp_path / "gone"), "gone")


def test_a_file_exchanged_while_it_is_opened_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind of the file is checked once more on the open descriptor."""
    path = tmp_path / "file"
    path.write_text("")
    seen: list[int] = []

    def second_time(status: os.stat_result, shown: str) -> None:
        seen.append(1)
        if len(seen) == 2:
            path.unlink()
            os.mkfifo(path)
            status = os.stat(path)
        check_regular(status, shown)

    monkeypatch.setattr("agent_hooks.storage.files.check_regular", second_time)
    with pytest.raises(StorageError, match="FIFO"):
        open_regular(str(path), "file")


def test_a_new_file_gets_its_directories_and_the_rights_of_the_umask(tmp_path: Path) -> None:
    """As any program would make it."""
    path = tmp_path / "a" / "b"
    before = os.umask(0o027)
    try:
        write_atomically(str(path), b"text")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"text"
    assert mode(path) == 0o640
    assert os.listdir(path.parent) == ["b"]


@pytest.mark.parametrize(("secret", "expected"), [(False, 0o4754), (True, 0o700)])
def test_an_existing_file_keeps_its_rights_unless_it_becomes_secret(
    secret: bool, expected: int, tmp_path: Path
) -> None:
    """Also the bits that writing clears."""
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o4754)
    write_atomically(str(path), b"new", secret=secret)
    assert (path.read_bytes(), mode(path)) == (b"new", expected)
    assert others_may_read(str(path)) is not secret


def test_a_draft_has_its_final_rights_before_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise another user could open the draft and read the secret as it is written."""
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    seen: list[int] = []
    change = os.fchmod

    def fchmod(file: int, rights: int) -> None:
        seen.append(os.fstat(file).st_size)
        assert os.fstat(file).st_mode & 0o077 == 0
        change(file, rights)

    monkeypatch.setattr(os, "fchmod", fchmod)
    write_atomically(str(path), b"new")
    assert seen == [0]
    assert mode(path) == 0o640


def test_a_file_of_an_owner_without_a_number_in_a_container_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a user namespace, the system refuses to give a file to a user of the outside: EINVAL, also for root."""
    path = tmp_path / "file"
    path.write_text("old")

    def refuse(fd: int, uid: int, gid: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fchown", refuse)
    write_atomically(str(path), b"new")
    assert path.read_text() == "new"


def test_a_new_file_takes_the_rights_of_the_file_that_it_is_like(tmp_path: Path) -> None:
    """A backup is as private as its original."""
    path, backup = tmp_path / "file", tmp_path / "file.old"
    path.write_text("old")
    path.chmod(0o600)
    write_atomically(str(backup), b"old", like=str(path))
    assert mode(backup) == 0o600


def test_a_symlink_stays_and_its_target_is_written(tmp_path: Path) -> None:
    """As with an editor that follows links."""
    (tmp_path / "target").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("target")
    write_atomically(str(link), b"new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_failed_write_leaves_the_old_text_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file and the system's reason."""
    path = tmp_path / "file"
    path.write_text("old")

    def replace(draft: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(StorageError, match=r"^cannot write it: Operation not permitted$"):
        write_atomically(str(path), b"new", "it")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_file_that_stands_in_the_place_of_a_directory_is_named(tmp_path: Path) -> None:
    """It may lie several directories above the one that is written."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write x: .*/file is not a directory"):
        write_atomically(str(tmp_path / "file" / "a" / "b"), b"", "x")
