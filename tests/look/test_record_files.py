"""The look at record files: all of them now and then, those of late each time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_hooks.look.index.record_files import RecordFiles

LONG_AGO = 1_000_000_000


class Clock:
    """A clock that a test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.seconds


def sizes(files: RecordFiles) -> dict[str, int]:
    """Return the size of each file by the session in its name."""
    return {os.path.basename(each.path).partition(".")[0]: each.size for each in files.now()}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Give a directory with a file of late and one that was written long ago."""
    (tmp_path / "new.1.2000.jsonl").write_text("{}\n")
    (tmp_path / "old.1.1000.jsonl").write_text("{}\n")
    os.utime(tmp_path / "old.1.1000.jsonl", (LONG_AGO, LONG_AGO))
    # Its time has a coarse clock, which a test is faster than.
    os.utime(tmp_path, (LONG_AGO, LONG_AGO))
    return tmp_path


@pytest.mark.behaviour("VW15")
def test_a_file_of_late_is_looked_at_each_time_and_an_old_one_now_and_then(directory: Path) -> None:
    """An old file that grows all the same is seen ten seconds later."""
    clock = Clock()
    files = RecordFiles(str(directory), clock)
    assert sizes(files) == {"old": 3, "new": 3}
    for path in directory.iterdir():
        path.write_text("{}\n{}\n")
    assert sizes(files) == {"old": 3, "new": 6}
    clock.seconds = 10.0
    assert sizes(files) == {"old": 6, "new": 6}


@pytest.mark.behaviour("VW15")
def test_files_that_come_or_go_are_seen_at_once(directory: Path) -> None:
    """Others of the directory are no record files."""
    files = RecordFiles(str(directory), Clock())
    assert [Path(each.path).name for each in files.now()] == ["old.1.1000.jsonl", "new.1.2000.jsonl"]
    (directory / "old.1.1000.jsonl").unlink()
    (directory / "index.jsonl").write_text("{}\n")
    (directory / "third.1.3000.jsonl").write_text("")
    assert sizes(files) == {"new": 3, "third": 0}
    assert RecordFiles(str(directory / "none")).now() == []
