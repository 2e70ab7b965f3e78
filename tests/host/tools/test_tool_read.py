"""The read tool."""

from __future__ import annotations

import os
import socket
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from agent_hooks.values.content import ImageContent
from agent_hooks.values.tool import ReadToolDetails
from support import PATIENCE

if TYPE_CHECKING:
    from host.tools.conftest import Call

pytestmark = pytest.mark.anyio


async def test_a_short_file_comes_as_it_is(call: Call, project: Path) -> None:
    (project / "a").write_text("one\ntwo\r\n\nthrée\n", newline="")
    output = await call("read", path="a")
    assert (output.text, output.details, output.is_error) == ("one\ntwo\r\n\nthrée\n", None, False)


async def test_an_empty_file_says_so(call: Call, project: Path) -> None:
    (project / "a").write_text("")
    assert (await call("read", path="a")).text == "(empty)"


async def test_offset_and_limit_choose_lines(call: Call, project: Path) -> None:
    (project / "a").write_text("1\n2\n3\n4\n5")
    assert (await call("read", path="a", offset=4)).text == "4\n5"
    output = await call("read", path="a", offset=2, limit=2.0)
    assert output.text == "2\n3\n[cut: lines 2 to 3 of 5 lines, 9 bytes; use offset=4 to go on]"
    assert output.details.truncation.total_lines == 5
    assert (await call("read", path="a", offset=4, limit=2)).details is None


async def test_a_large_offset_is_found(call: Call, project: Path) -> None:
    (project / "a").write_text("".join(f"{n}\n" for n in range(1, 50_001)))
    assert (await call("read", path="a", offset=49_999)).text == "49999\n50000\n"


async def test_many_lines_are_cut_and_the_note_says_how_to_go_on(call: Call, project: Path) -> None:
    (project / "a").write_text("x\n" * 5000)
    output = await call("read", path="a")
    *lines, note = output.text.split("\n")
    assert lines == ["x"] * 2000
    assert note == "[cut: lines 1 to 2000 of 5000 lines, 10000 bytes; use offset=2001 to go on]"
    assert isinstance(output.details, ReadToolDetails)
    assert output.details.full_output_path == str(project / "a")
    assert output.details.truncation is not None
    assert output.details.truncation.truncated_by == "lines"


async def test_much_text_is_cut_after_a_whole_line(call: Call, project: Path) -> None:
    (project / "a").write_text(("y" * 999 + "\n") * 60)
    output = await call("read", path="a")
    cut = output.details.truncation
    assert (cut.truncated_by, cut.output_lines, cut.output_bytes) == ("bytes", 51, 51_000)
    assert output.text.endswith("use offset=52 to go on]")


@pytest.mark.parametrize("before", ["", "a", "ab"])
async def test_one_long_line_is_cut_between_characters(call: Call, project: Path, before: str) -> None:
    (project / "a").write_text(before + "€" * 40_000 + "\nnext\n")
    output = await call("read", path="a")
    text, note = output.text.split("\n")
    assert text == before + "€" * ((51_200 - len(before)) // 3)
    assert note.startswith(f"[cut: the first {len(text.encode())} bytes of line 1 of 2 lines")
    assert (await call("read", path="a", offset=2)).text == "next\n"


async def test_bytes_that_are_no_text_are_replaced(call: Call, project: Path) -> None:
    (project / "a").write_bytes(b"caf\xe9\n")
    assert (await call("read", path="a")).text == "caf\ufffd\n"


async def test_an_offset_past_the_end_names_the_number_of_lines(call: Call, project: Path) -> None:
    (project / "a").write_text("1\n2\n")
    for offset in (3, 4, 5000):
        output = await call("read", path="a", offset=offset)
        assert output.is_error
        assert output.text == f"offset {offset} is past the end: a has 2 lines"
    (project / "b").write_text("1\n2")
    assert "has 2 lines" in (await call("read", path="b", offset=3)).text


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give one sparse file of 2 GiB to both backends, so that its second reading comes from memory."""
    path = tmp_path_factory.mktemp("huge") / "file"
    path.write_text("line\n" * 5000)
    os.truncate(path, 512 * 1024**2)
    yield path
    path.unlink()


async def test_a_huge_text_file_is_streamed(call: Call, huge: Path) -> None:
    size = 512 * 1024**2
    output = await call("read", path=str(huge))
    assert output.text.startswith("line\nline\n")
    cut = output.details.truncation
    assert (cut.total_bytes, cut.total_lines) == (size, 5001)


async def test_counting_a_huge_file_can_be_cancelled(call: Call, project: Path) -> None:
    (project / "a").write_text("line\n" * 5000)
    os.truncate(project / "a", 1024**4)
    with anyio.fail_after(PATIENCE), anyio.move_on_after(0.05) as scope:
        await call("read", path="a")
    assert scope.cancelled_caught


async def test_a_binary_file_is_refused_with_its_size(call: Call, project: Path) -> None:
    (project / "a").write_bytes(b"abc\0" * 5000)
    output = await call("read", path="a")
    assert (output.text, output.is_error) == ("a is a binary file, 20000 bytes", True)


async def test_a_missing_file_a_directory_and_a_path_below_a_file_are_refused(call: Call, project: Path) -> None:
    (project / "file").write_text("")
    (project / "loop").symlink_to("loop")
    for path, text in [
        ("none", "cannot read none: No such file or directory"),
        (".", ". is a directory; use ls to list its files"),
        ("file/x", "cannot read file/x: Not a directory"),
        ("loop", "cannot read loop: Too many levels of symbolic links"),
    ]:
        output = await call("read", path=path)
        assert (output.text, output.is_error) == (text, True)


async def test_what_could_block_is_refused_at_once(call: Call, project: Path) -> None:
    os.mkfifo(project / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(project / "socket"))
        with anyio.fail_after(PATIENCE):
            assert (await call("read", path="fifo")).text == "fifo is a FIFO, not a regular file"
            assert (await call("read", path="socket")).text == "socket is a socket, not a regular file"
            assert (await call("read", path="/dev/zero")).text == "/dev/zero is a device, not a regular file"


@pytest.mark.parametrize(
    ("start", "mime_type"),
    [
        (b"\x89PNG\r\n\x1a\n\0", "image/png"),
        (b"\xff\xd8\xff\xe0\0", "image/jpeg"),
        (b"GIF87a\0", "image/gif"),
        (b"GIF89a\0", "image/gif"),
        (b"RIFF\1\2\3\4WEBP\0", "image/webp"),
    ],
)
async def test_an_image_is_an_image(call: Call, project: Path, start: bytes, mime_type: str) -> None:
    data = start + bytes(20_000)
    (project / "picture").write_bytes(data)
    (block,) = (await call("read", path="picture")).content
    assert isinstance(block, ImageContent)
    assert (block.mime_type, b64decode(block.data)) == (mime_type, data)


async def test_a_riff_file_that_is_no_image_is_binary(call: Call, project: Path) -> None:
    (project / "sound").write_bytes(b"RIFF\1\2\3\4WAVE\0")
    assert "binary" in (await call("read", path="sound")).text


async def test_a_huge_image_is_refused(call: Call, project: Path) -> None:
    (project / "picture").write_bytes(b"GIF89a")
    os.truncate(project / "picture", 512 * 1024**2)
    output = await call("read", path="picture")
    assert (output.text, output.is_error) == ("picture is an image of more than 5 MiB; make it smaller first", True)
