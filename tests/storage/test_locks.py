"""A lock belongs to one process, and ends when its file is closed."""

from __future__ import annotations

import os
from pathlib import Path

from agent_hooks.storage.locks import try_lock


def test_a_lock_is_held_until_the_file_is_closed(tmp_path: Path) -> None:
    """A second opening of the file stands for another process."""
    one, other = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert try_lock(one)
    assert not try_lock(other)
    os.close(one)
    assert try_lock(other)
    os.close(other)
