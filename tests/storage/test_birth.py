"""The time at which a directory was made."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_hooks.storage.birth import born


def test_a_directory_was_born_when_it_was_made_and_not_when_it_changed(tmp_path: Path) -> None:
    """The clock of the file system is coarse; a change of the directory moves its other times only."""
    before = time.time()
    directory = tmp_path / "made"
    directory.mkdir()
    os.utime(directory, (1, 1))
    told = born(str(directory))
    # Some file systems do not tell.
    assert told is None or before - 0.05 < told <= time.time()


def test_a_path_that_is_gone_and_a_system_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no time then."""
    assert born(str(tmp_path / "gone")) is None
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    assert born(str(tmp_path)) is None
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(statx=lambda *_: 0))
    assert born(str(tmp_path)) is None


def test_a_system_on_which_python_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS, it is a field of `stat`."""
    monkeypatch.setattr(os, "lstat", lambda _: SimpleNamespace(st_birthtime=12.5))
    told = born(str(tmp_path))
    monkeypatch.undo()
    assert told == 12.5
