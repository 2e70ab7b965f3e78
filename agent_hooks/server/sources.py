"""The source files of hooks and settings, which are checked for changes before each event."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

State = tuple[int, int, int] | None
"""The time of a file's last change, its size and its inode; `None` if there is no file."""
_READ = (".py", ".json", ".yaml", ".yml", ".toml")


class Sources:
    """Some files and directories: `if sources.changed(): …`.

    `files`: files that need not exist.
    `directories`: directories in which all files of code and settings count, at any depth; a missing directory counts as
    an empty one, and one that cannot be read counts as a file.
    `whole`: directories in which every file counts but those whose names begin with a dot.
    `later`: returns files that count from the moment in which it first names them, modules that a hook imports later for
    example.
    `differing`: the files that had changed when `changed` last said so.
    """

    def __init__(
        self,
        files: Iterable[str],
        directories: Iterable[str],
        whole: Iterable[str] = (),
        later: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._files = tuple(files)
        self._later = later
        self._whole = frozenset(whole)
        self._roots = tuple(dict.fromkeys((*directories, *self._whole)))
        self._file_states: dict[str, State] = {}
        # The states of the files and of the directories.
        self._states: dict[str, State] = {}
        self.differing: tuple[str, ...] = ()
        self.changed()

    def since(self, before: Sources) -> Sources:
        """Return these sources; they count as changed if `before` has changed since it was made.

        A file that changes while it is loaded may have been read before the change.
        """
        if before.changed():
            self._states, self._file_states = {}, {}
        return self

    def changed(self) -> bool:
        """Return whether a file has changed since the last call; takes a few microseconds if none has."""
        self._take_later()
        if self._states and not self._differs():
            return False
        before = self._file_states
        files, folders = self._list()
        self._file_states = {path: state(path) for path in files}
        self._states = {**folders, **self._file_states}
        if self._file_states == before:
            return False
        both = {**before, **self._file_states}
        self.differing = tuple(path for path in both if before.get(path) != self._file_states.get(path))
        return True

    def _take_later(self) -> None:
        for path in self._later():
            if path not in self._file_states and path not in self._files:
                self._files = (*self._files, path)
                if self._states:
                    self._states[path] = self._file_states[path] = state(path)

    def _list(self) -> tuple[list[str], dict[str, State]]:
        """Return the paths of all files, and the states of all directories."""
        files, folders = list(self._files), {}

        def count(error: OSError) -> None:
            # A missing directory is no file; a link to nowhere is.
            if os.path.lexists(error.filename):
                files.append(error.filename)

        for root in self._roots:
            folders[root] = state(root)
            for folder, inner, names in os.walk(root, onerror=count, followlinks=False):
                inner[:] = sorted(name for name in inner if name != "__pycache__")
                folders.update({path: state(path) for name in inner if (path := os.path.join(folder, name))})
                counted = [name for name in names if name.endswith(_READ) or (root in self._whole and name[0] != ".")]
                files += [os.path.join(folder, name) for name in sorted(counted)]
        return files, folders

    def _differs(self) -> bool:
        try:
            for path, before in self._states.items():
                if before is None:
                    # `access` is faster than the exception of `stat` for a missing file.  A link to nowhere is there.
                    if os.access(path, os.F_OK, follow_symlinks=False):
                        return True
                elif _state_of(os.stat(path)) != before:
                    return True
        except OSError:
            # A file was removed.
            return True
        return False


def _state_of(stat: os.stat_result) -> State:
    # `st_mtime_ns` would not do, because `cp -p` and `touch` set it to any time.
    return stat.st_ctime_ns, stat.st_size, stat.st_ino


def state(path: str) -> State:
    """Return the state of a file, or of a link to a missing file; it changes whenever the file or the link does."""
    try:
        return _state_of(os.stat(path))
    except OSError:
        with suppress(OSError):
            return _state_of(os.lstat(path))
        return None
