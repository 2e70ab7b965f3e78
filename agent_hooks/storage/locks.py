"""Locks between processes, by `flock`: the system releases a lock when its process ends, even by a kill."""

from __future__ import annotations

import fcntl
import time


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


def wait_for_lock(file: int, patience: float, *, pause: float = 0.02) -> bool:
    """Lock an open file until it is closed; return `False` if another process holds the lock for `patience` seconds.

    `pause`: the seconds between two tries.  Raises `OSError` on a file system without locks.
    """
    until = time.monotonic() + patience
    while not try_lock(file):
        if time.monotonic() >= until:
            return False
        time.sleep(pause)
    return True
