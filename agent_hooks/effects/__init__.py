"""What a call would do, with the facts of the machine that are needed to tell.

`guards` follows a call and records its effects without I/O.  This room finds the project's root and the real paths, and
keeps the effects of one call for all its handlers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_hooks.values.effects import Effects

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
        self._home = self._home or os.path.expanduser("~")
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
        # Imported here, because most calls are never asked for their effects.
        from agent_hooks.effects.machine import LocalMachine
        from agent_hooks.guards import effects_of_call
        from agent_hooks.guards.base import GuardedCall
        from agent_hooks.values.effects import Place

        cwd, root, home = self.cwd, self.root, self.home
        machine = LocalMachine(cwd, root, home)
        call = GuardedCall(
            tool_name=tool,
            input=input,
            cwd=cwd,
            home=home,
            temp=(os.environ.get("TMPDIR") or "/tmp",),  # noqa: S108  # compared with paths, never opened
            machine=machine,
            stays_open=self.stays_open,
        )
        return effects_of_call(call, Place(root, machine.real(root), home, _FOLDS))


def _root_of(cwd: str, home: str) -> str:
    """Return the root of the project that a directory lies in."""
    path = cwd
    while path not in ("/", home):
        if os.path.lexists(f"{path}/.git") or os.path.lexists(f"{path}/.agent"):
            return path
        above = os.path.dirname(path)
        if above == path:
            # The directory is not absolute, or begins with two slashes.
            break
        path = above
    return cwd
