"""Save the files that git refuses by their names: `.GIT`, a symlink `.gitmodules`, and the `.git` of repositories inside.

In the trees of a store, `@agent-hooks` follows each part of a path that git refuses.  As soon as the private index has a
file below the directory of a repository inside, git lists the other files there.  The files of its `.git` are such files,
so the whole repository is saved.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import anyio.to_thread

from agent_hooks.checkpoints.git import Worktree
from agent_hooks.checkpoints.rights import note_rights
from agent_hooks.storage.files import StorageError

_SUFFIX = "@agent-hooks"
_LINK = "120000"
# The most files of one `.git`.
_MANY = 10_000
# Nanoseconds within which two changes of a file may have the same time.
_COARSE = 100_000_000
# How often files may vanish while they are saved.
_TRIES = 5

Known = Mapping[str, tuple[tuple[int, ...], str]]
"""The signature and the object of each file that was saved, by its name in the store."""


class Refused(NamedTuple):
    """The result: `known` for the next time, and each `.git` that is too `large`; `is_changed`: the index has changed.

    `units`: each `.git` of a repository inside.
    """

    known: Known
    large: tuple[str, ...]
    is_changed: bool
    units: frozenset[str] = frozenset()


class _File(NamedTuple):
    path: str
    mode: str
    signature: tuple[int, ...]


def is_suspect(path: str) -> bool:
    """Tell quickly whether git may refuse a path."""
    return ".git" in path.lower() or _SUFFIX in path


def stored_name(path: str, *, link: bool) -> str:
    """Return the name that a path has in the trees of a store."""
    name = "/".join(f"{part}{_SUFFIX}" if _is_refused(part) else part for part in path.split("/"))
    return f"{name}{_SUFFIX}" if link and _names_modules(path) else name


def real_name(stored: str) -> str:
    """Return the path of a name in the trees of a store."""
    if _SUFFIX not in stored:
        return stored
    parts = [(part, part.removesuffix(_SUFFIX)) for part in stored.split("/")]
    return "/".join(short if _is_refused(short) or _names_modules(short) else part for part, short in parts)


def git_directory(path: str) -> str | None:
    """Return the `.git` that contains a path or is the path, and `None` for any other path."""
    before, found, _ = f"/{path}/".partition("/.git/")
    return f"{before}/.git"[1:] if found else None


def _is_refused(part: str) -> bool:
    return part.lower() == ".git" or part.endswith(_SUFFIX)


def _names_modules(path: str) -> bool:
    return os.path.basename(path).lower() == ".gitmodules"


async def save_refused(
    worktree: Worktree, stored: frozenset[str], new: Iterable[str], known: Known, most: int
) -> Refused:
    """Save the files in the private index.  Raises `CheckpointError`.

    `stored`: their names in the index.
    `new`: the files that git lists, and the repositories, which end with a slash.
    `known`: the files that were saved before.
    `most`: the bytes that one `.git` may have.
    """
    # Most working trees have no such file.
    new = [each for each in new if each.endswith("/") or is_suspect(each)]
    if not stored and not new:
        return Refused({}, (), is_changed=False)
    for attempt in range(_TRIES):
        files, large, units = await anyio.to_thread.run_sync(_present, worktree.top, stored, new, most)
        fresh = [name for name in files if name not in stored or known.get(name, ((), ""))[0] != files[name].signature]
        plain = [name for name in fresh if files[name].mode != _LINK]
        write = partial(worktree.git, "hash-object", "-w", "--no-filters")
        if not plain:
            out = b""
            break
        done = await write("--stdin-paths", stdin=b"".join(_line(files[name].path) for name in plain))
        # It fails if a file has vanished.
        if not done.code or attempt == _TRIES - 1:
            out = done.need()
            break
    digests = dict(zip(plain, out.decode().split(), strict=True))
    for name in fresh:
        if files[name].mode == _LINK:
            target = b""
            with suppress(OSError):
                target = os.readlink(os.fsencode(os.path.join(worktree.top, files[name].path)))
            digests[name] = (await write("--stdin", stdin=target)).need().decode().strip()
    none = "0" * (64 if worktree.object_format == "sha256" else 40)
    lines = [f"0 {none}\t".encode() + os.fsencode(name) for name in stored - files.keys()]
    lines += [f"{files[name].mode} {digests[name]}\t".encode() + os.fsencode(name) for name in fresh]
    if lines:
        (await worktree.git("update-index", "-z", "--index-info", stdin=b"\0".join([*lines, b""]))).need()
        try:
            await anyio.to_thread.run_sync(
                note_rights, worktree.store, worktree.top, [files[name].path for name in fresh]
            )
        except (OSError, StorageError) as exc:
            raise worktree.failed(exc) from None
    settled = time.time_ns() - _COARSE
    noted = {
        name: (file.signature, digests[name] if name in digests else known[name][1])
        for name, file in files.items()
        if file.signature[-1] < settled
    }
    return Refused(noted, large, bool(lines), units)


def _present(
    top: str, stored: frozenset[str], new: list[str], most: int
) -> tuple[dict[str, _File], tuple[str, ...], frozenset[str]]:
    """Return the files that are there by their names in the store, each `.git` that is too large, and each `.git`."""
    units = {unit for each in stored if (unit := git_directory(real_name(each)))}
    units |= {f"{each}.git" for each in new if each.endswith("/")}
    files: dict[str, _File] = {}
    for path in new:
        if not path.endswith("/") and (file := _file(top, path)):
            name = stored_name(path, link=file.mode == _LINK)
            if name != path:
                files[name] = file
    large = []
    for unit in sorted(units):
        inside = [file for path in _paths(top, unit) if (file := _file(top, path))]
        if len(inside) > _MANY or sum(file.signature[0] for file in inside) > most:
            large.append(unit)
        if unit in large or (not inside and os.path.lexists(os.path.join(top, unit))):
            # An empty file, so that git lists the other files of the repository.
            files[stored_name(unit, link=False)] = _File(os.devnull, "100644", (0,))
        else:
            files |= {stored_name(file.path, link=file.mode == _LINK): file for file in inside}
    return files, tuple(large), frozenset(units)


def _paths(top: str, unit: str) -> list[str]:
    """Return the path to a `.git` and the paths in it, up to the limit."""
    found = [unit]
    if os.path.islink(os.path.join(top, unit)):
        return found
    for where, below, names in os.walk(os.path.join(top, unit)):
        links = (name for name in below if os.path.islink(os.path.join(where, name)))
        found += (os.path.relpath(os.path.join(where, name), top) for name in (*names, *links))
        if len(found) > _MANY:
            break
    return found


def _file(top: str, path: str) -> _File | None:
    """Return a file or symlink that can be read, `None` for anything else."""
    full = os.path.join(top, path)
    try:
        status = os.lstat(full)
    except OSError:
        return None
    signature = (status.st_size, status.st_ino, status.st_mode, status.st_mtime_ns, status.st_ctime_ns)
    if stat.S_ISLNK(status.st_mode):
        return _File(path, _LINK, signature)
    if not stat.S_ISREG(status.st_mode) or not os.access(full, os.R_OK):
        return None
    return _File(path, "100755" if status.st_mode & stat.S_IXUSR else "100644", signature)


def _line(path: str) -> bytes:
    """Return a path as git reads it in a list of lines."""
    # git takes a carriage return at the end for a part of the line break.
    if "\n" in path or path.startswith('"') or path.endswith("\r"):
        for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
            path = path.replace(char, escaped)
        path = f'"{path}"'
    return os.fsencode(path) + b"\n"
