"""The ls tool."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_hooks.values.tool import LsToolDetails

if TYPE_CHECKING:
    from host.tools.conftest import Call

pytestmark = pytest.mark.anyio


async def test_entries_are_sorted_and_marked(call: Call, project: Path) -> None:
    (project / "b").mkdir()
    (project / "C").write_text("")
    (project / "a").write_text("")
    (project / ".dot").write_text("")
    (project / "link").symlink_to("b")
    (project / "dangling").symlink_to("no\nwhere")
    os.mkfifo(project / "fifo")
    output = await call("ls")
    assert output.text == ".dot\na\nb/\nC\ndangling -> no\\nwhere\nfifo\nlink -> b"
    assert (output.details, output.is_error) == (None, False)


async def test_an_empty_directory_says_so(call: Call, project: Path) -> None:
    (project / "d").mkdir()
    assert (await call("ls", path="d")).text == "(empty)"


async def test_what_is_no_directory_is_refused(call: Call, project: Path) -> None:
    (project / "file").write_text("")
    for path, text in [
        ("none", "cannot list none: No such file or directory"),
        ("file", "file is not a directory; use read to see a file"),
        ("file/x", "cannot list file/x: Not a directory"),
    ]:
        output = await call("ls", path=path)
        assert (output.text, output.is_error) == (text, True)


async def test_the_limit_cuts_and_the_full_text_is_kept(call: Call, project: Path) -> None:
    for n in range(501):
        (project / f"{n:03}").write_text("")
    output = await call("ls")
    details = output.details
    assert isinstance(details, LsToolDetails)
    *lines, note = output.text.split("\n")
    assert lines == [f"{n:03}" for n in range(500)]
    assert note == f"[cut: the first 500 lines of 501 (501 entries); the full text is in {details.full_output_path}]"
    assert details.truncation is not None
    assert (details.truncation.truncated_by, details.truncation.total_lines) == ("lines", 501)
    assert details.full_output_path is not None
    assert Path(details.full_output_path).read_text().split("\n")[-1] == "500"
    assert (await call("ls", limit=501)).details is None


async def test_long_names_are_cut_by_bytes(call: Call, project: Path) -> None:
    for n in range(300):
        (project / f"{n:03}{'x' * 200}").write_text("")
    output = await call("ls")
    assert output.details.truncation.truncated_by == "bytes"
    assert output.details.truncation.output_lines == 250


async def test_a_link_that_vanishes_is_still_named(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "link").symlink_to("x")

    def vanished(path: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "readlink", vanished)
    assert (await call("ls")).text == "link -> ?"
