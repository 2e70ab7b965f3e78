"""Find a file whose name is spelled in another way on the disk: with another kind of space, or composed differently."""

from __future__ import annotations

import os
from contextlib import suppress


def existing(path: str) -> str:
    """Return `path`, or a file beside it whose name differs only in the kind of space or in Unicode composition."""
    if os.path.lexists(path):
        return path
    directory, name = os.path.split(path)
    if not name:
        return path
    directory = existing(directory)
    with suppress(OSError):
        for candidate in os.listdir(directory):
            if _spelling(candidate) == _spelling(name):
                return os.path.join(directory, candidate)
    return path


def _spelling(name: str) -> str:
    # Imported here, because most files are found under the name that was given.
    import unicodedata

    return "".join(" " if unicodedata.category(char) == "Zs" else char for char in unicodedata.normalize("NFC", name))
