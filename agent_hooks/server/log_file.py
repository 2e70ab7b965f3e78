"""The log of a server: the file behind its stdout and stderr, which also holds the output of hooks."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

_LIMIT = 1 << 20
"""The size from which a log is shortened, in bytes."""


def shorten(path: str) -> None:
    """Keep the last half MiB of a log that is larger than one MiB, in whole lines if it has any.

    The file is shortened in place and then appended to, so that lines which other processes write meanwhile come behind
    it.  A log that cannot be shortened stays as it is.
    """
    with suppress(OSError):
        if os.path.getsize(path) <= _LIMIT:
            return
        with open(path, "a+b") as log:
            log.seek(-_LIMIT // 2, os.SEEK_END)
            end = log.read()
            log.truncate(0)
            log.write(end.partition(b"\n")[2] or end)


def reopen_if_removed(path: str) -> None:
    """Continue in a new log if the log behind stdout was removed, as an earlier server does at its end."""
    with suppress(OSError):
        state = os.fstat(1)
        if stat.S_ISREG(state.st_mode) and state.st_nlink == 0:
            new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(new, 1)
            os.dup2(new, 2)
            os.close(new)
