"""The file that the server's stdout and stderr go to, hooks' prints among it.  Above: server, serve.  Below: nothing."""

from __future__ import annotations

import os
from contextlib import suppress

_LIMIT = 1 << 20  # bytes


def shorten(path: str) -> None:
    """Keep the last half MiB of a log of more than one, in whole lines if it has any; what cannot be shortened stays.

    In place, and only ever appending, as all who have it open do: what they write meanwhile goes behind.
    """
    with suppress(OSError):
        if os.path.getsize(path) <= _LIMIT:
            return
        with open(path, "a+b") as log:
            log.seek(-_LIMIT // 2, os.SEEK_END)
            end = log.read()
            log.truncate(0)
            log.write(end.partition(b"\n")[2] or end)
