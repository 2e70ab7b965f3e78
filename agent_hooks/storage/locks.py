"""Locks between processes, by `flock`: the system releases a lock when its process ends, even by a kill."""

from __future__ import annotations

import fcntl


def try_lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed; return `False` if another process holds the lock.

    `shared`: any number of processes may hold such a lock at once, while no process holds the other one.
    Raises `OSError` on a file system without locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
