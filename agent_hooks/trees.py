"""Source trees: the `.agent` directories that settings, hooks and transformers are read from.

The agent home and the directories of an embedding program are read from the disk.  A project that needs approval is read
from the bytes that a person approved, which are held in memory: the bytes that were hashed are the bytes that count.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from msgspec import Struct

NO_FILE = b"\0"
"""The first byte of the approved contents of an entry that is no file: a directory or a link to nowhere, for example.

The reason stands behind it.  No settings file begins with this byte.
"""


class ApprovedFile(Struct, frozen=True):
    """One approved file: its contents, and the absolute path of a copy with these contents.

    `place` is the file itself, or the kept copy when the file was changed after its approval.
    """

    data: bytes
    place: str


class SourceTree(Struct, frozen=True):
    """One `.agent` directory.

    `directory`: its absolute path; `project`: the directory that it belongs to, `None` for the agent home; `files`: the
    approved files by their absolute paths, `None` when the disk counts.
    """

    directory: str
    project: str | None = None
    files: Mapping[str, ApprovedFile] | None = None

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted.  Raises `OSError`, `FileNotFoundError` when there is none."""
        if self.files is None:
            return sorted(os.listdir(directory))
        above = directory.rstrip(os.sep) + os.sep
        names = {path[len(above) :].partition(os.sep)[0] for path in self.files if path.startswith(above)}
        if not names:
            raise FileNotFoundError(directory)
        return sorted(names)


def approved_file(trees: Iterable[SourceTree], path: str) -> ApprovedFile | None:
    """Return the approved file at an absolute path, `None` when the disk counts there."""
    return next((tree.files[path] for tree in trees if tree.files is not None and path in tree.files), None)
