"""The session files that this machine wrote, noted in the agent home.

A repository may bring session files, and the model would take their messages for its own conversation.  So a note has
the real path of a file, its inode and the random id of the session: a file that comes from elsewhere has none of them
right, not even when it takes the place of a noted one.
"""

from __future__ import annotations

import os
from contextlib import suppress

from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, read_regular, write_atomically

MOST_NOTES = 2_000
"""With so many notes, those of files that are gone are removed."""
_LONGEST = 16_384


class WrittenSessions:
    """The notes below an agent home: `noted(path, id)`, and `note(path, id)`, which raises `StorageError`."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._directory = os.path.join(home, "trust", "sessions")

    def noted(self, path: str | os.PathLike[str], session_id: str) -> bool:
        """Tell whether a file is noted with this session."""
        real = os.path.realpath(path)
        place = self._place(real)
        try:
            return os.path.isfile(place) and read_regular(place, place, _LONGEST) == _text(real, session_id)
        except (StorageError, OSError):
            return False

    def note(self, path: str | os.PathLike[str], session_id: str) -> None:
        """Note that this machine wrote a file, or that a person accepted it; raises `StorageError`."""
        real = os.path.realpath(path)
        try:
            os.makedirs(self._home, exist_ok=True)
            for directory in (os.path.dirname(self._directory), self._directory):
                os.makedirs(directory, mode=0o700, exist_ok=True)
            write_atomically(self._place(real), _text(real, session_id), secret=True)
            self._sweep()
        except OSError as exc:
            raise StorageError(f"cannot write below {self._directory}: {exc.strerror}") from None

    def _place(self, real: str) -> str:
        return os.path.join(self._directory, sha256(os.fsencode(real)))

    def _sweep(self) -> None:
        """Remove the notes of files that are gone, when there are many."""
        names = os.listdir(self._directory)
        if len(names) <= MOST_NOTES:
            return
        for name in names:
            place = os.path.join(self._directory, name)
            with suppress(StorageError, OSError):
                path = read_regular(place, place, _LONGEST).split(b"\n", 2)[2]
                if not os.path.lexists(path):
                    os.unlink(place)


def _text(real: str, session_id: str) -> bytes:
    """Return the text of a note; the path is its end, because it may contain anything."""
    return b"%d\n%s\n%s" % (os.stat(real).st_ino, session_id.encode("utf-8", "surrogatepass"), os.fsencode(real))
