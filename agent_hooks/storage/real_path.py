"""The real path of a text that comes from another program, and that no file name may be able to hold."""

from __future__ import annotations

import os


def real_path(path: str) -> str:
    """Return a path with all links followed."""
    return os.path.realpath(spelled_for_disk(path))


def spelled_for_disk(path: str) -> str:
    """Return a path as another program would open it.

    JSON can hold half of a surrogate pair, and no file name can.  Node.js opens the file with U+FFFD in its place.
    """
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return path.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return path
