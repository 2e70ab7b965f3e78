"""How much of a log stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_hooks.server.files import shorten

MIB = 1 << 20


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (b"x" * (MIB - 1) + b"\n", b"x" * (MIB - 1) + b"\n"),
        (b"x" * MIB + b"\nlast\n", b"last\n"),
        (b"1234567\n" * (MIB // 8 + 1), b"1234567\n" * (MIB // 16 - 1)),
        (b"x" * (MIB + 1), b"x" * (MIB // 2)),
        (b"x" * MIB + b"\n", b"x" * (MIB // 2 - 1) + b"\n"),
    ],
    ids=["not too long", "a long line", "lines", "one line", "one line that ends"],
)
def test_of_a_log_that_is_too_long_whole_lines_of_the_end_stay(given: bytes, kept: bytes, tmp_path: Path) -> None:
    """Without a line end, half a line stays.  A program that has the file open appends to it."""
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as writer:
        writer.write(given)
        shorten(str(log))
        assert log.read_bytes() == kept
        writer.write(b"more")
    assert log.read_bytes() == kept + b"more"


def test_a_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A server that was started by hand writes to the terminal."""
    shorten(str(tmp_path / "log"))
    assert not list(tmp_path.iterdir())
