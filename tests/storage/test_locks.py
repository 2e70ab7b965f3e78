"""A lock belongs to one process, and ends when its file is closed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from agent_hooks.storage.locks import try_lock, wait_for_lock
from support import PATIENCE


def test_a_lock_is_held_until_the_file_is_closed(tmp_path: Path) -> None:
    """A second opening of the file stands for another process."""
    one, other = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert try_lock(one)
    assert not try_lock(other)
    os.close(one)
    assert try_lock(other)
    os.close(other)


def test_a_wait_for_a_lock_ends_with_the_lock_or_with_its_patience(tmp_path: Path) -> None:
    """It gets a lock that is let go of meanwhile, and gives one up that another process keeps."""
    one, other = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert try_lock(one)
    assert not wait_for_lock(other, 0.05, pause=0.001)
    got: list[bool] = []
    waiting = threading.Thread(target=lambda: got.append(wait_for_lock(other, PATIENCE)))
    waiting.start()
    os.close(one)
    waiting.join(PATIENCE)
    assert got == [True]
    os.close(other)
