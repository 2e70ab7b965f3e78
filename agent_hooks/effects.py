"""What a call would do, with the facts of the machine that are needed to tell.

`guards` follows a call and records its effects without I/O.  This module finds the project's root and the real paths, and
keeps the effects of one call for all its handlers.

A network file system whose server is gone holds each process that touches it.  `/proc/self/mountinfo` names the mounts
without touching them, so paths on such a mount keep their spelling, except on the mount that the call works in.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from stat import S_ISDIR
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_hooks.guards.base import Machine

if TYPE_CHECKING:
    from agent_hooks.guards.base import GuardedCall
    from agent_hooks.values.effects import Effects, Place

__all__ = ["CallEffects", "effects_of"]

# The file system of macOS usually takes small and capital letters for the same.
_FOLDS = sys.platform == "darwin"


def effects_of(tool: str, input: Mapping[str, Any], *, cwd: str | os.PathLike[str]) -> Effects:
    """Return what a call of a tool would do; nothing is run.

    `tool`, `input`: as in the event `tool_call`; `cwd`: the directory of the call.  Globs with a slash count from the
    root of its project: the next directory with `.git` or `.agent`, from `cwd` upwards, else `cwd` itself.
    """
    return CallEffects(os.path.abspath(os.fspath(cwd)))(tool, input)


class CallEffects:
    """The effects of one call, made when they are first asked for, and again after a rewrite.

    `cwd`: the absolute directory of the call; `home`, `root`: absolute, by default the person's home and the root of
    the project that `cwd` lies in; `stays_open`: the agent may type into the command while it runs.
    """

    __slots__ = ("_home", "_last", "_root", "cwd", "stays_open")

    def __init__(self, cwd: str, *, home: str = "", root: str = "", stays_open: bool = False) -> None:
        self.cwd = cwd
        self.stays_open = stays_open
        self._home = home
        self._root = root
        self._last: tuple[str, Mapping[str, Any], Effects] | None = None

    @property
    def home(self) -> str:
        """The person's home directory."""
        if not self._home:
            # `expanduser` returns the same, and takes longer.
            given = os.environ.get("HOME")
            self._home = given.rstrip("/") or "/" if given else os.path.expanduser("~")
        return self._home

    @property
    def root(self) -> str:
        """The root of the project."""
        self._root = self._root or _root_of(self.cwd, self.home)
        return self._root

    def __call__(self, tool: str, input: Mapping[str, Any]) -> Effects:
        """Return the effects of the call with this input."""
        last = self._last
        if last is None or last[0] != tool or (last[1] is not input and last[1] != input):
            last = self._last = (tool, input, self._effects(tool, input))
        return last[2]

    def _effects(self, tool: str, input: Mapping[str, Any]) -> Effects:
        parts = _parts()
        cwd, root, home = self.cwd, self.root, self.home
        machine = parts.machine(cwd, root, home)
        call = parts.call(
            tool_name=tool,
            input=input,
            cwd=cwd,
            home=home,
            temp=(os.environ.get("TMPDIR") or "/tmp",),  # noqa: S108  # compared with paths, never opened
            machine=machine,
            stays_open=self.stays_open,
        )
        return parts.effects_of_call(call, parts.place(root, machine.real(root), home, _FOLDS))


class _Parts(NamedTuple):
    """The parts that make effects, imported at the first use, because most calls are never asked for their effects."""

    machine: type[LocalMachine]
    call: type[GuardedCall]
    place: type[Place]
    effects_of_call: Callable[[GuardedCall, Place], Effects]


@cache
def _parts() -> _Parts:
    from agent_hooks.guards import effects_of_call
    from agent_hooks.guards.base import GuardedCall
    from agent_hooks.values.effects import Place

    return _Parts(LocalMachine, GuardedCall, Place, effects_of_call)


def _root_of(cwd: str, home: str) -> str:
    """Return the root of the project that a directory lies in."""
    path = cwd
    while path not in ("/", home):
        if _is_there(f"{path}/.git") or _is_there(f"{path}/.agent"):
            return path
        above = os.path.dirname(path)
        if above == path:
            # The directory is not absolute, or begins with two slashes.
            break
        path = above
    return cwd


def _is_there(path: str) -> bool:
    try:
        os.lstat(path)
    except (OSError, ValueError):
        return False
    return True


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
