"""What a call would do, with the facts of the machine that are needed to tell.

`guards` follows a call and records its effects without I/O.  This room finds the project's root and the real paths, and
keeps the effects of one call for all its handlers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agent_hooks.effects.machine import LocalMachine
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
    from agent_hooks.effects.machine import LocalMachine
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
