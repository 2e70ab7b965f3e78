"""Real paths, without touching a file system that may not answer.

A network file system whose server is gone holds the process that touches it.  `/proc/self/mountinfo` names the mounts
without touching them, so paths on such a mount keep their spelling, except on the mount that the call works in.
"""

from __future__ import annotations

import os
import re
from stat import S_ISDIR
from time import monotonic

from agent_hooks.guards.base import Machine

# Types of file systems that wait for another machine or another program.
_SLOW = re.compile(
    r"nfs\d?|cifs|smb\w*|afs|coda|ceph|gluster\w*|lustre|9p|ncpfs|davfs\d?|autofs|fuse(?:\..*)?|fuseblk|gfs2?"
)
_MOST_LINKS = 40
_KEPT_SECONDS = 2.0
_MOUNTS = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")


class LocalMachine(Machine):
    """Follows links on local file systems.

    `cwd`, `root`, `home`: the directories that the call works in, and that therefore answer.  Where there is no list of
    mounts, only links below them are followed.
    """

    def __init__(self, cwd: str, root: str, home: str) -> None:
        self._used = tuple(f"{path.rstrip('/')}/" for path in (cwd, root, home))
        self._slow = slow_mounts()
        self._known: dict[str, str] = {}

    def real(self, path: str) -> str:
        """Return a path with its links followed, as far as no slow file system is touched."""
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            return path
        return path if "\0" in path else self._follow(path, 0)

    @property
    def without_list(self) -> bool:
        """Whether this system keeps no list of mounts."""
        return self._slow is None

    def is_directory(self, path: str) -> bool | None:
        """Return whether a path is a directory, `None` when it is absent or lies on a slow file system."""
        real = self.real(path)
        try:
            return S_ISDIR(os.lstat(real).st_mode) if self.answers(real) else None
        except (OSError, ValueError):
            return None

    def _follow(self, path: str, links: int) -> str:
        if path == "/" or links > _MOST_LINKS:
            return path
        if (known := self._known.get(path)) is not None:
            return known
        head, _, name = path.rpartition("/")
        parent = self._follow(head or "/", links)
        if name in ("", ".", ".."):
            return os.path.dirname(parent) if name == ".." else parent
        here = f"{parent.rstrip('/')}/{name}"
        found = here
        if self.answers(here):
            try:
                target = os.readlink(here)
            except (OSError, ValueError):
                # It is no link, or there is no such file.
                pass
            else:
                found = self._follow(os.path.join(parent, target), links + 1)
        self._known[path] = found
        return found

    def answers(self, path: str) -> bool:
        """Return whether a path lies on a file system that answers at once."""
        if self._slow == ():
            return True
        below = f"{path}/"
        if self._slow is None:
            return below.startswith(self._used)
        mount = next((each for each in self._slow if below.startswith(each)), None)
        return mount is None or any(used.startswith(mount) for used in self._used)


_mounts: tuple[float, str, tuple[str, ...] | None] = (0.0, "", None)


def slow_mounts(file: str = _MOUNTS) -> tuple[str, ...] | None:
    """Return the mounts that may not answer, each with a slash, the longest first; `None` where no list is kept.

    A local mount inside of a slow one does not make it quick: the way to it leads through the slow one.
    """
    global _mounts
    now = monotonic()
    if _mounts[1] == file and now < _mounts[0]:
        return _mounts[2]
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as lines:
            found: tuple[str, ...] | None = tuple(sorted(filter(None, map(_slow_mount, lines)), key=len, reverse=True))
    # The system may fail to give the list, and a hook in this process may have replaced `open` by a function that raises
    # anything.  Nobody hears of it: without a list, links are followed.
    except Exception:
        found = None
    _mounts = now + _KEPT_SECONDS, file, found
    return found


def _slow_mount(line: str) -> str:
    """Return the directory of a line of the list if its file system may not answer, else nothing."""
    before, _, after = line.partition(" - ")
    fields, kind = before.split(" "), after.split(" ")[0]
    if len(fields) < 5 or not _SLOW.fullmatch(kind):
        return ""
    path = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4])
    return f"{path.rstrip('/')}/"
