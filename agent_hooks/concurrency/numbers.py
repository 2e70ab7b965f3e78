"""High numbers for the descriptors of a resident process.

A hook that runs inline can close descriptors which are not its own, nearly always low numbers.  So the sockets and locks
of the process get high ones.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FLOOR = 200
"""The lowest number of such a descriptor."""


@contextmanager
def high_numbers() -> Iterator[None]:
    """Let the descriptors that are opened inside have numbers from `FLOOR` on."""
    taken = []
    # The limit of the process may be lower.
    with suppress(OSError):
        taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        while taken[-1] < FLOOR:
            taken.append(os.dup(taken[0]))
    try:
        yield
    finally:
        for each in taken:
            os.close(each)


def identity(file: int | str) -> tuple[int, int] | None:
    """Return the device and the number of the file at a descriptor or a path, `None` for a missing file."""
    try:
        state = os.stat(file)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def high(descriptor: int) -> int:
    """Return a copy of a descriptor with a number from `FLOOR` on, and close the original."""
    try:
        copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FLOOR)
    except OSError:
        # The limit of the process is lower.
        return descriptor
    os.close(descriptor)
    return copy
