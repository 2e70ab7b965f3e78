"""The edit tool."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from host.tools.conftest import Call

pytestmark = pytest.mark.anyio


async def test_the_answer_is_a_diff_with_three_lines_of_context(call: Call, project: Path) -> None:
    (project / "a").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    output = await call("edit", path="a", oldText="line 50\n", newText="line fifty\nand more\n")
    assert (output.details, output.is_error) == (None, False)
    assert output.text == (
        "--- a\n+++ a\n@@ -47,7 +47,8 @@\n line 47\n line 48\n line 49\n-line 50\n+line fifty\n+and more\n"
        " line 51\n line 52\n line 53"
    )


@pytest.mark.parametrize(
    ("before", "old", "new", "after", "diff"),
    [
        ("a\nb\n", "a", "x", "x\nb\n", "@@ -1,2 +1,2 @@\n-a\n+x\n b"),
        ("a\nb\n", "b\n", "", "a\n", "@@ -1,2 +1 @@\n a\n-b"),
        ("a", "a", "", "", "@@ -1 +1 @@\n-a\n+"),
        ("a\nb", "b", "c\n", "a\nc\n", "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+"),
        ("a.b\naxb\n", "a.b", "c", "c\naxb\n", "@@ -1,2 +1,2 @@\n-a.b\n+c\n axb"),
        ("a\n", "a", r"\1\g<0>", "\\1\\g<0>\n", "@@ -1 +1 @@\n-a\n+\\1\\g<0>"),
    ],
)
async def test_only_the_one_place_changes(
    call: Call, project: Path, before: str, old: str, new: str, after: str, diff: str
) -> None:
    (project / "f").write_text(before)
    output = await call("edit", path="f", oldText=old, newText=new)
    assert output.text == f"--- f\n+++ f\n{diff}"
    assert (project / "f").read_text() == after


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", "\nb", "\nc", "a\r\nc\r\n"),
        # Mixed: the endings of the place.
        ("a\nb\nc\r\n", "a\nb", "x\ny", "x\ny\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"),  # asked for exactly
        ("a\nb\n", "a\n", "a\r\n", "a\r\nb\n"),
        ("\ufeffa\r\nb", "a\n", "x\n", "\ufeffx\r\nb"),
    ],
)
async def test_line_endings_and_bom_stay(
    call: Call, project: Path, before: str, old: str, new: str, after: str
) -> None:
    (project / "f").write_bytes(before.encode())
    output = await call("edit", path="f", oldText=old, newText=new)
    assert not output.is_error, output.text
    assert (project / "f").read_bytes() == after.encode()


async def test_bytes_that_are_no_text_stay(call: Call, project: Path) -> None:
    (project / "f").write_bytes(b"caf\xe9\nb\n")
    output = await call("edit", path="f", oldText="b", newText="c")
    assert (project / "f").read_bytes() == b"caf\xe9\nc\n"
    assert " caf?\n" in output.text


async def test_mode_and_symlink_stay(call: Call, project: Path) -> None:
    (project / "real").write_text("a")
    (project / "real").chmod(0o755)
    (project / "link").symlink_to("real")
    await call("edit", path="link", oldText="a", newText="b")
    assert (project / "link").is_symlink()
    assert (project / "real").read_text() == "b"
    assert stat.S_IMODE((project / "real").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("", "x", "oldText is empty; give the text to replace, or use write for a new file"),
        ("same", "same", "oldText and newText are the same; nothing to do"),
        ("none", "x", "oldText was not found in f; read the file and copy the text exactly"),
        ("a", "x", "oldText was found 4 times in f; give more context, so that it occurs once"),
        ("aa", "x", "oldText was found 2 times in f; give more context, so that it occurs once"),
        ("b", "\ud800", "the text contains half a surrogate pair; write the whole character"),
    ],
)
async def test_what_is_not_clear_is_refused(call: Call, project: Path, old: str, new: str, text: str) -> None:
    (project / "f").write_text("aaa\nb\na\n")
    output = await call("edit", path="f", oldText=old, newText=new)
    assert (output.text, output.is_error) == (text, True)
    assert (project / "f").read_text() == "aaa\nb\na\n"


async def test_what_cannot_be_edited_is_told(call: Call, project: Path) -> None:
    (project / "binary").write_bytes(b"a\0")
    (project / "huge").write_text("a")
    os.truncate(project / "huge", 2 * 1024**3)
    os.mkfifo(project / "fifo")
    for path, text in [
        ("none", "cannot read none: No such file or directory"),
        (".", ". is a directory; use ls to list its files"),
        ("fifo", "fifo is a FIFO, not a regular file"),
        ("binary", "binary is a binary file"),
        ("huge", "huge is larger than 10 MiB; use bash to change it"),
    ]:
        output = await call("edit", path=path, oldText="a", newText="b")
        assert (output.text, output.is_error) == (text, True)


async def test_a_large_change_is_told_without_a_diff(call: Call, project: Path) -> None:
    (project / "f").write_text("start\nend\n")
    output = await call("edit", path="f", oldText="end", newText="x\n" * 3000)
    assert output.text == "edited f: 2 lines from line 1 on are 3002 lines now"


async def test_a_long_diff_is_cut(call: Call, project: Path) -> None:
    (project / "f").write_text("a\nb\n" + "x" * 60_000 + "\n")
    output = await call("edit", path="f", oldText="a", newText="c")
    assert output.text.startswith("--- f\n+++ f\n@@ -1,3 +1,3 @@\n-a\n+c\n b\n[cut: the first 37 of 600")
    assert (output.details, output.is_error) == (None, False)
