"""Collects the effects of a call while the call is followed: each effect once, in the order in which it is found."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from agent_hooks.guards.base import plain
from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import LONGEST_PATH, UNKNOWN
from agent_hooks.values.effects import (
    NOWHERE,
    Access,
    Device,
    Discard,
    Effects,
    Install,
    Kill,
    PathEffect,
    Place,
    Privilege,
    Program,
    Transfer,
)
from agent_hooks.values.effects import Unknown as UnknownPart

# No file: the streams of the program itself, and files that keep nothing.
_NO_FILE = lazy_pattern(
    r"-?|/dev/(?:null|zero|full|u?random|std(?:in|out|err)|tty|fd/.*|pts/\d+)|/proc/self/fd/\d+", re.DOTALL
)
_WILD = lazy_pattern(r"[*?\[]")
# Effects of one kind; an honest command has few.
_MOST = 1000
_LONGEST_TEXT = 200


class Recorder:
    """The effects so far.

    `paused`: nothing is recorded, for code that is followed and does not run.
    """

    __slots__ = ("_devices", "_others", "_paths", "_programs", "_transfers", "_unknown", "paused")

    def __init__(self) -> None:
        self.paused = 0
        self._paths: dict[tuple[str, Access, str, bool], PathEffect] = {}
        self._programs: dict[Program, None] = {}
        self._transfers: dict[Transfer, None] = {}
        self._devices: dict[Device, None] = {}
        self._others: dict[Discard | Install | Kill | Privilege, None] = {}
        self._unknown: dict[UnknownPart, None] = {}

    def path(self, effect: PathEffect) -> None:
        """Keep an effect on a file; a whole tree takes the place of its root alone."""
        key = effect.path, effect.access, effect.program, effect.elsewhere
        former = self._paths.get(key)
        if self._open(self._paths) and (former is None or (effect.tree and not former.tree)):
            self._paths[key] = effect

    def program(self, program: Program) -> None:
        """Keep a program that runs."""
        if self._open(self._programs):
            self._programs[program] = None

    def transfer(self, transfer: Transfer) -> None:
        """Keep content that leaves the machine or comes to it."""
        if self._open(self._transfers):
            self._transfers[transfer] = None

    def device(self, device: Device) -> None:
        """Keep a device that is read or written as a whole."""
        if self._open(self._devices):
            self._devices[device] = None

    def other(self, effect: Discard | Install | Kill | Privilege) -> None:
        """Keep any other effect."""
        if self._open(self._others):
            self._others[effect] = None

    def unknown(self, kind: Literal["opaque", "dynamic", "unparsed"], text: str, why: str) -> None:
        """Keep a part whose effects are not known."""
        if not self.paused and len(self._unknown) < _MOST:
            self._unknown[UnknownPart(kind, shown(text), why)] = None

    def may_have_made(self, path: str) -> bool:
        """Return whether the call may make a directory of this path before."""
        written = (each for each in self._paths.values() if each.access == "write")
        return any(each.path == path or each.tree or not each.certain for each in written)

    def _open(self, kept: dict[object, object] | object) -> bool:
        if self.paused:
            return False
        if len(kept) < _MOST:  # type: ignore[arg-type]  # a dict of any kind
            return True
        self.unknown("dynamic", "…", "the call has too many effects to list")
        return False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing meanwhile."""
        self.paused += 1
        try:
            yield
        finally:
            self.paused -= 1

    def effects(self, place: Place = NOWHERE) -> Effects:
        """Return the effects so far, with plain texts. Globs are relative to the directories of `place`."""
        others = tuple(map(plain, self._others)) if self._others else ()
        return Effects(
            paths=tuple(map(plain, self._paths.values())),
            programs=tuple(map(plain, self._programs)),
            transfers=tuple(map(plain, self._transfers)),
            # Most calls have none of these.
            discards=tuple(each for each in others if isinstance(each, Discard)) if others else (),
            installs=tuple(each for each in others if isinstance(each, Install)) if others else (),
            kills=tuple(each for each in others if isinstance(each, Kill)) if others else (),
            privileges=tuple(each for each in others if isinstance(each, Privilege)) if others else (),
            devices=tuple(map(plain, self._devices)),
            unknown=tuple(map(plain, self._unknown)),
            place=plain(place),
        )


def shown(text: str) -> str:
    """Return a text for a person, with `…` for the parts that are not known."""
    line = text.replace(UNKNOWN, "…")
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"


def words_of(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a program, with `…` for the parts that are not known."""
    return tuple(word.replace(UNKNOWN, "…") if UNKNOWN in word else str(word) for word in argv)


def is_no_file(word: str) -> bool:
    """Return whether a word names a stream or a device that keeps nothing, and no file."""
    return _NO_FILE.fullmatch(word) is not None


def spelled(word: str, cwd: str, home: str) -> str:
    """Return the absolute path that a word names, with `UNKNOWN` for the parts that are not known.

    A path that may begin anywhere begins with `UNKNOWN`.
    """
    if word[:7].lower() == "file://":
        word = word[7:].removeprefix("localhost")
    if len(word) > LONGEST_PATH:
        return UNKNOWN
    if word == "~" or word.startswith("~/"):
        word = home + word[1:]
    path = word if word.startswith(("/", UNKNOWN)) else f"{cwd}/{word}"
    if UNKNOWN in path and ".." in path:
        # `$X/../a` is no `a`: the part that is not known may have any depth.
        parts = path.split("/")
        unknown = next(at for at, part in enumerate(parts) if UNKNOWN in part)
        back = max((at for at, part in enumerate(parts) if part == ".." and at > unknown), default=None)
        if back is not None:
            path = "/".join([UNKNOWN, *parts[back + 1 :]])
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


def is_pattern(path: str, *, glob: bool) -> bool:
    """Return whether a path is not known in full; `glob`: its wildcards are those of a shell, and no letters."""
    return UNKNOWN in path or (glob and _WILD.search(path) is not None)


def as_pattern(path: str) -> str:
    """Return a path with `**` in the place of each part that is not known."""
    return re.sub(f"{UNKNOWN}+", "**", path) if UNKNOWN in path else path
