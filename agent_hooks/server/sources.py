"""Whether any of the files that hooks and settings come from has changed.  Above: sessions.  Below: nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable

State = tuple[int, int, int] | None  # when it was changed, its size, which file it is; `None`: there is none
_READ = (".py", ".json", ".yaml", ".yml", ".toml")


class Sources:
    """Some files, and what lies in some directories: `if sources.changed(): …`.

    `files` need not exist.  Of `directories` and what is below them, files of code and settings count; a directory that
    is not there is as good as an empty one.
    """

    def __init__(self, files: Iterable[str], directories: Iterable[str]) -> None:
        self._files = tuple(files)
        self._roots = tuple(directories)
        self._found: dict[str, State] = {}
        self._seen: dict[str, State] = {}  # what was found, and the directories
        self.changed()

    def since(self, before: Sources) -> Sources:
        """Return these, as changed if anything has changed since `before` was made: what was read may be the old."""
        if before.changed():
            self._seen, self._found = {}, {}
        return self

    def changed(self) -> bool:
        """Tell whether anything is other than at the last call; a few microseconds when nothing is."""
        if self._seen and not self._differs():
            return False
        before = self._found
        listed, folders = list(self._files), {}
        for root in self._roots:
            folders[root] = state(root)
            for folder, inner, names in os.walk(root, followlinks=False):
                inner[:] = sorted(name for name in inner if name != "__pycache__")
                folders.update({path: state(path) for name in inner if (path := os.path.join(folder, name))})
                listed += [os.path.join(folder, name) for name in sorted(names) if name.endswith(_READ)]
        self._found = {path: state(path) for path in listed}
        self._seen = {**folders, **self._found}
        return self._found != before

    def _differs(self) -> bool:
        try:
            for path, was in self._seen.items():
                if was is None:
                    if os.access(path, os.F_OK):  # needs no exception to say no
                        return True
                elif _state_of(os.stat(path)) != was:
                    return True
        except OSError:  # it is gone
            return True
        return False


def _state_of(stat: os.stat_result) -> State:
    return stat.st_ctime_ns, stat.st_size, stat.st_ino  # the time of writing is set by `cp -p` and `touch` as they like


def state(path: str) -> State:
    """Return what changes when a file does."""
    try:
        return _state_of(os.stat(path))
    except OSError:
        return None
