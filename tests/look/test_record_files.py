"""The look at record files: those of late each time, and the others in parts, all within ten seconds."""

from __future__ import annotations

import os
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from agent_hooks.look.index.files import RecordFiles

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


def test_a_file_of_late_is_looked_at_each_time_and_an_old_one_now_and_then(directory: Path) -> None:
    """An old file that grows all the same is seen within ten seconds."""
    clock = Clock()
    files = RecordFiles(str(directory), clock)
    assert sizes(files) == {"old": 3, "new": 3}
    for path in directory.iterdir():
        path.write_text("{}\n{}\n")
    assert sizes(files) == {"old": 3, "new": 6}
    clock.seconds = 10.0
    assert sizes(files) == {"old": 6, "new": 6}


def test_files_that_come_or_go_are_seen_at_once(directory: Path) -> None:
    """Others of the directory are no record files."""
    files = RecordFiles(str(directory), Clock())
    assert [Path(each.path).name for each in files.now()] == ["old.1.1000.jsonl", "new.1.2000.jsonl"]
    (directory / "old.1.1000.jsonl").unlink()
    (directory / "index.jsonl").write_text("{}\n")
    (directory / "third.1.3000.jsonl").write_text("")
    assert sizes(files) == {"new": 3, "third": 0}
    assert RecordFiles(str(directory / "none")).now() == []


def test_each_second_a_tenth_of_the_old_files_is_looked_at(tmp_path: Path) -> None:
    """So that no update of an open page takes as long as a look at all of them."""
    clock = Clock()
    for number in range(20):
        path = tmp_path / f"s{number:02}.1.{number}.jsonl"
        path.write_text("{}\n")
        os.utime(path, (LONG_AGO, LONG_AGO))
    os.utime(tmp_path, (LONG_AGO, LONG_AGO))
    files = RecordFiles(str(tmp_path), clock)
    assert set(sizes(files).values()) == {3}
    for path in tmp_path.iterdir():
        path.write_text("{}\n{}\n")
        os.utime(path, (LONG_AGO, LONG_AGO))
    grown = []
    for second in range(1, 11):
        clock.seconds = float(second)
        grown.append(list(sizes(files).values()).count(6))
    assert grown[0] in (2, 3)
    assert max(after - before for before, after in pairwise(grown)) <= 3
    assert grown[-1] == 20


def test_a_file_that_came_in_the_moment_of_a_look_is_seen_later(directory: Path) -> None:
    """The time of the directory is as before, because it has a coarse clock."""
    clock = Clock()
    files = RecordFiles(str(directory), clock)
    assert len(files.now()) == 2
    (directory / "third.1.1500.jsonl").write_text("{}\n")
    os.utime(directory, (LONG_AGO, LONG_AGO))
    assert sizes(files) == {"old": 3, "new": 3}
    clock.seconds = 10.0
    assert [Path(each.path).name.partition(".")[0] for each in files.now()] == ["old", "third", "new"]


def test_what_is_no_file_or_no_directory_any_more_is_forgotten(directory: Path) -> None:
    """A directory in the place of a record file, a name that is a link, and the removal of all."""
    clock = Clock()
    files = RecordFiles(str(directory), clock)
    assert len(files.now()) == 2
    (directory / "new.1.2000.jsonl").unlink()
    (directory / "new.1.2000.jsonl").mkdir()
    (directory / "link.1.3000.jsonl").symlink_to(directory / "old.1.1000.jsonl")
    assert sizes(files) == {"old": 3}
    (directory / "new.1.2000.jsonl").rmdir()
    (directory / "new.1.2000.jsonl").write_text("{}\n")
    assert sizes(files) == {"old": 3, "new": 3}
    shutil.rmtree(directory)
    assert files.now() == []
