"""Find a file whose name is spelled in another way on the disk: with another kind of space, or composed differently."""

from __future__ import annotations

import os
from contextlib import suppress

from agent_hooks.validation import LONGEST_PATH


def existing(path: str) -> str:
    """Return `path`, or a file beside it whose name differs only in the kind of space or in Unicode composition."""
    names: list[str] = []
    found = path if len(path) <= LONGEST_PATH else ""
    while found and not os.path.lexists(found):
        found, name = os.path.split(found)
        if not name:
            return path
        names.append(name)
    while names:
        beside = _beside(found, names[-1])
        if beside is None:
            return os.path.join(found, *reversed(names))
        found = os.path.join(found, beside)
        names.pop()
    return found or path


def _beside(directory: str, name: str) -> str | None:
    """Return the name of the file in a directory that is spelled like `name`, if there is one."""
    with suppress(OSError):
        for candidate in os.listdir(directory or "."):
            if _spelling(candidate) == _spelling(name):
                return candidate
    return None


def _spelling(name: str) -> str:
    # Imported here, because most files are found under the name that was given.
    import unicodedata

    return "".join(" " if unicodedata.category(char) == "Zs" else char for char in unicodedata.normalize("NFC", name))
