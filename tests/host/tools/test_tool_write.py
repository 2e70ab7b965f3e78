"""The write tool."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from host.tools.conftest import Call

pytestmark = pytest.mark.anyio


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_a_new_file_and_its_directories_are_made(call: Call, project: Path) -> None:
    output = await call("write", path="a/b/c.txt", content="größe\r\n")
    assert (output.text, output.details, output.is_error) == ("wrote 9 bytes to a/b/c.txt", None, False)
    assert (project / "a/b/c.txt").read_bytes() == "größe\r\n".encode()
    assert names(project / "a/b") == ["c.txt"]


async def test_a_new_file_has_the_mode_the_umask_gives(call: Call, project: Path) -> None:
    old = os.umask(0o027)
    try:
        await call("write", path="a", content="")
    finally:
        os.umask(old)
    assert stat.S_IMODE((project / "a").stat().st_mode) == 0o640


async def test_an_existing_file_keeps_its_mode(call: Call, project: Path) -> None:
    (project / "a").write_text("old")
    (project / "a").chmod(0o751)
    await call("write", path="a", content="new")
    assert (project / "a").read_text() == "new"
    assert stat.S_IMODE((project / "a").stat().st_mode) == 0o751


async def test_a_symlink_stays_and_its_target_is_written(call: Call, project: Path) -> None:
    (project / "real").mkdir()
    (project / "link").symlink_to("real/a")  # not there yet
    await call("write", path="link", content="one")
    await call("write", path="link", content="two")
    assert (project / "link").is_symlink()
    assert (project / "real/a").read_text() == "two"


async def test_a_reader_never_sees_a_part(call: Call, project: Path) -> None:
    (project / "a").write_text("old")
    with open(project / "a") as reader:
        await call("write", path="a", content="new")
        assert reader.read() == "old"


async def test_what_cannot_be_written_is_told(call: Call, project: Path) -> None:
    (project / "file").write_text("x")
    (project / "dir").mkdir()
    (project / "loop").symlink_to("loop")
    os.mkfifo(project / "fifo")
    for path, text in [
        ("dir", "dir is a directory; use ls to list its files"),
        ("fifo", "fifo is a FIFO, not a regular file"),
        ("/dev/null", "/dev/null is a device, not a regular file"),
        ("file/x", f"cannot write file/x: {project}/file is not a directory"),
        ("file/x/y", f"cannot write file/x/y: {project}/file is not a directory"),
        ("loop", "cannot write loop: Too many levels of symbolic links"),
        ("n" * 300, f"cannot write {'n' * 300}: File name too long"),
    ]:
        output = await call("write", path=path, content="new")
        assert (output.text, output.is_error) == (text, True)
    assert names(project) == ["dir", "fifo", "file", "loop"]


async def test_a_write_protected_file_is_left_alone(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a").write_text("old")
    # Root may write everything.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    output = await call("write", path="a", content="new")
    assert (output.text, output.is_error) == ("cannot write a: the file is write-protected", True)
    assert (project / "a").read_text() == "old"


async def test_a_failing_disk_leaves_the_old_text_and_no_draft(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    output = await call("write", path="a", content="new")
    assert (output.text, output.is_error) == ("cannot write a: No space left on device", True)
    assert (project / "a").read_text() == "old"
    assert names(project) == ["a"]


async def test_half_a_character_is_refused(call: Call, project: Path) -> None:
    assert (await call("write", path="a", content="\ud800")).is_error
    assert names(project) == []
