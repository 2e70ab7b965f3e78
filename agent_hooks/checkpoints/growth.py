"""Count the bytes that checkpoints have written since the last pruning, for all stores together.

The count is the size of one file: each of its bytes stands for up to `UNIT` bytes in the stores.  Processes append to it,
which needs no lock, and a file that is half written is a count all the same.  The sizes of the files that were saved are
counted before compression, so the stores have grown by the count at most.
"""

from __future__ import annotations

import os
from contextlib import suppress

from agent_hooks.turn_notes import stores_directory

UNIT = 1 << 16
_NAME = "written"


def note_written(size: int) -> None:
    """Add a number of bytes to the count; without it, the daily pruning finds them."""
    if size > 0:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with suppress(OSError):
            file = os.open(_path(), flags, 0o600)
            try:
                os.write(file, bytes(-(-size // UNIT)))
            finally:
                os.close(file)


def written() -> int:
    """Return the count in bytes, at most `UNIT` too many for each checkpoint."""
    try:
        return os.lstat(_path()).st_size * UNIT
    except OSError:
        return 0


def begin_count() -> None:
    """Begin the count anew, because the sizes of the stores are known now."""
    with suppress(OSError):
        os.unlink(_path())


def size_of(paths: list[str]) -> int:
    """Return the bytes of files; one that is gone has none."""
    total = 0
    for path in paths:
        with suppress(OSError):
            total += os.lstat(path).st_size
    return total


def _path() -> str:
    return os.path.join(stores_directory(), _NAME)
