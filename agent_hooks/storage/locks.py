"""Locks between processes, by `flock`: the system releases a lock when its process ends, even by a kill."""

from __future__ import annotations

import fcntl


def try_lock(file: int) -> bool:
    """Lock an open file until it is closed; return `False` if another process holds the lock.

    Raises `OSError` on a file system without locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
