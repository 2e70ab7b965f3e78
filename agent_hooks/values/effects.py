"""What a tool call would do: the files, programs and hosts that it would reach.

`event.effects` of `ToolCall` and `BeforeToolCall` has them, and `effects_of` makes them for any call.  The records are
plain values; nothing here looks at the disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from agent_hooks.values.globs import glob_of, meet, path_steps

Access = Literal["read", "write", "delete", "list", "execute"]


class PathEffect(Struct, frozen=True):
    """A file or a directory that a call would reach.

    `path`: absolute and normalised; where a part of it is not known, `certain` is false and the path is a pattern, in
    which `**` is any text and `*`, `?` and `[…]` are those of a shell.  `real`: the same with all links followed.
    `access`: `read`, `write`, `delete`, `list` or `execute`.  `program`: the program that does it, or the name of the
    tool.  `tree`: everything inside is meant too; `generated`: the tree is build output or temporary, so a glob without
    a slash is not searched inside of it.  `elsewhere`: it lies on another machine or in a container, as with `ssh host
    'rm x'`; `reads`, `writes` and `deletes` pass over it.
    """

    path: str
    real: str
    access: Access
    program: str = ""
    certain: bool = True
    tree: bool = False
    generated: bool = False
    elsewhere: bool = False


class Program(Struct, frozen=True):
    """A program that a call would run.

    `name`: the plain name; `argv`: all words; `cwd`: the directory it runs in; `via`: the programs that carry it, the
    outermost first.
    """

    name: str
    argv: tuple[str, ...]
    cwd: str = ""
    via: tuple[str, ...] = ()


class Transfer(Struct, frozen=True):
    """Content that leaves the machine (`direction` is `out`), or comes to it (`in`).

    `host`: in small letters, without user and port; `None` when it is not known; `what`: the content, for a person;
    `program`: the program that does it.
    """

    host: str | None
    direction: Literal["in", "out"]
    what: str
    program: str = ""


class Discard(Struct, frozen=True):
    """Work that is lost without a file of it being named.

    `what`: for example `uncommitted changes`, `untracked files`, `commits`, `stashes`, `volumes`; `program`: the
    program that does it.
    """

    what: str
    program: str = ""


class Install(Struct, frozen=True):
    """A package that is installed.

    `name`: the package's, empty for those that the project names; `program`: the program that does it.
    """

    name: str
    program: str = ""


class Kill(Struct, frozen=True):
    """A process that is ended.

    `target`: its number, its name, or another description; `program`: the program that does it.
    """

    target: str
    program: str = ""


class Privilege(Struct, frozen=True):
    """A right that is gained or given.

    `what`: `root`, `setuid`, `world-writable` or another; `program`: the program that does it.
    """

    what: str
    program: str = ""


class Device(Struct, frozen=True):
    """A device that is read or written as a whole; `access`: `read` or `write`; `program`: the program that does it."""

    path: str
    access: Access
    program: str = ""


class Unknown(Struct, frozen=True):
    """A part of a call whose effects are not known; `kind` is one of three.

    `opaque`: a program that may do anything; `dynamic`: a program or a text that is known only when the call runs;
    `unparsed`: a text that cannot be read.  `text`: the part; `why`: the reason, for a person.
    """

    kind: Literal["opaque", "dynamic", "unparsed"]
    text: str
    why: str


class Place(Struct, frozen=True):
    """The directories that globs are relative to.

    `root`: of the project, and `real_root` with all links followed; `home`: of the person; `folds`: the file system
    takes small and capital letters for the same.
    """

    root: str = ""
    real_root: str = ""
    home: str = ""
    folds: bool = False


NOWHERE = Place()


class Effects(Struct, frozen=True, kw_only=True):
    """All effects of a call, in the order in which they would happen; each stands here once.

    `paths`: the files and directories that it reaches; `programs`: those that it runs; `transfers`: contents that leave
    or come; `discards`: work that is lost; `installs`, `kills`, `privileges`, `devices`: the packages, processes, rights
    and devices that it concerns; `unknown`: the parts whose effects are not known; `place`: the directories that globs
    are relative to.
    """

    paths: tuple[PathEffect, ...] = ()
    programs: tuple[Program, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    discards: tuple[Discard, ...] = ()
    installs: tuple[Install, ...] = ()
    kills: tuple[Kill, ...] = ()
    privileges: tuple[Privilege, ...] = ()
    devices: tuple[Device, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    place: Place = NOWHERE

    def reads(self, glob: str) -> bool:
        """Return whether the content of a file that matches is read, or may be.

        `glob`: as in `.gitignore`.  Without a slash it counts at any depth, with one from the project's root; `~/…` and
        absolute paths work.
        """
        return self._any(glob, [each for each in self.paths if each.access == "read"])

    def writes(self, glob: str) -> bool:
        """Return whether a file that matches is written, or may be: also one inside of a tree that is lost or replaced.

        `glob`: as for `reads`.  An opaque program, as `make`, counts as nothing; it stands in `unknown`.
        """
        changed = [each for each in self.paths if each.access == "write" or (each.access == "delete" and each.tree)]
        return self._any(glob, changed)

    def deletes(self, glob: str) -> bool:
        """Return whether a file that matches is deleted or moved away, or may be; `glob`: as for `reads`."""
        return self._any(glob, [each for each in self.paths if each.access == "delete"])

    def runs(self, name: str) -> bool:
        """Return whether a program of this name is run, by itself or carried by another one.

        `name`: without a directory; `*` and `?` are wildcards.  A command word that is not known at all stands in
        `unknown`.
        """
        wanted = name.lower()
        return any(fnmatchcase(each.name, wanted) or _may_be(each.name, wanted) for each in self.programs)

    def sends_to(self, host: str) -> bool:
        """Return whether content leaves the machine for a host that matches, or for one that is not known.

        `host`: a name; `*` and `?` are wildcards, so `*` is any host.
        """
        wanted = host.lower()
        sent = (each.host for each in self.transfers if each.direction == "out")
        return any(to is None or fnmatchcase(to, wanted) or _may_be(to, wanted) for to in sent)

    def _any(self, glob: str, effects: Iterable[PathEffect]) -> bool:
        return any(not each.elsewhere and _fits(each, glob, self.place) for each in effects)


def _fits(effect: PathEffect, glob: str, place: Place) -> bool:
    """Return whether a glob may match the path of an effect, as it is spelled or with its links followed."""
    roots = dict.fromkeys((place.root, place.real_root or place.root))
    paths = dict.fromkeys((effect.path, effect.real))
    return any(_fits_path(effect, path, glob, root, place) for path in paths for root in roots)


def _fits_path(effect: PathEffect, path: str, glob: str, root: str, place: Place) -> bool:
    folds = place.folds
    wanted = glob_of(glob, root, place.home, folds=folds, below=_is_below(path, place))
    if effect.certain and wanted.pattern.fullmatch(path.lower() if folds else path):
        return True
    tree = effect.tree and not (effect.generated and wanted.anywhere)
    if effect.certain:
        return tree and meet(path_steps(path, tree=True, folds=folds, literal=True), wanted.whole)
    # A shell keeps a glob as it is when no file matches.
    spellings = (path, path.replace("[", "\\[")) if "[" in path else (path,)
    return any(
        meet(path_steps(each, tree=tree, folds=folds), wanted.steps)
        or meet(path_steps(each, tree=tree, folds=folds, named=True), wanted.likely)
        for each in spellings
    )


def _is_below(path: str, place: Place) -> bool:
    """Return whether a path is the project's root or lies in it."""
    return any(root and f"{path}/".startswith(f"{root.rstrip('/')}/") for root in (place.root, place.real_root))


def _may_be(name: str, wanted: str) -> bool:
    """Return whether a partly known name may be the wanted one."""
    return "*" in name and bool(name.strip("*?")) and meet(path_steps(name), path_steps(wanted))
