"""Write the working tree as a git tree, and choose the files to save.

1. git lists the files that differ from the private index.
2. This module chooses among them, and gives a reason for each file that is not saved.
3. git hashes the chosen files.

git decides whether a file is tracked or ignored; the bytes are those on the disk, never those in the person's index.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import anyio
from msgspec import Struct

from agent_hooks.checkpoints.git import CheckpointError, Output, Worktree, listed, names_in, real_parents
from agent_hooks.errors import os_reason
from agent_hooks.settings import PROJECT_DIRECTORY

# Session files are never saved: a restore must not rewind a conversation.
_SESSIONS = f"/{PROJECT_DIRECTORY}/sessions/"
_MANY_FAILURES = 100
# The only place where git names these paths is its error output.
_UNOPENED = re.compile(r"could not open directory '(.*?)/?': (.*)")
_UNPROCESSED = re.compile(r"Unable to process path (.*)", re.DOTALL)


class Skipped(Struct, frozen=True):
    """A path that is not saved or not restored, and the reason.

    `path` is relative to the top of the working tree; a directory's path ends with `/`.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        """Return `path: reason`, for a person."""
        return f"{printable(self.path)}: {self.reason}"


class Snapshot(NamedTuple):
    """The tree that was written, and the paths that it lacks."""

    tree: str
    skipped: tuple[Skipped, ...]


class Rules(NamedTuple):
    """The files that are not saved: untracked ones larger than `max_file_size` bytes, and the paths in `leave`."""

    max_file_size: int
    leave: frozenset[str] = frozenset()

    def leaves(self, path: str) -> bool:
        """Tell whether a path is neither saved nor restored."""
        return _SESSIONS in f"/{path}" or any(path == each or path.startswith(f"{each}/") for each in self.leave)


def rules(worktree: Worktree, cwd: str | os.PathLike[str], max_file_size: int, leave: Collection[str]) -> Rules:
    """Return the rules; relative paths in `leave` begin at `cwd`."""
    return Rules(
        max_file_size,
        frozenset(os.path.relpath(os.path.realpath(os.path.join(cwd, path)), worktree.top) for path in leave),
    )


def printable(path: str) -> str:
    """Return a path for a person's screen: unchanged, or quoted when it has characters that cannot be printed."""
    return path if path.isprintable() else ascii(path)


async def take(worktree: Worktree, rules: Rules) -> Snapshot:
    """Write the working tree as a git tree; the caller holds the lock.  Raises `CheckpointError`."""
    try:
        return await _take(worktree, rules)
    except CheckpointError:
        if not os.path.exists(worktree.index):
            raise
        # The private index is damaged or names objects that are gone; git can make a new one from the files.
        os.unlink(worktree.index)
        return await _take(worktree, rules)


async def _take(worktree: Worktree, rules: Rules) -> Snapshot:
    changed, ignored, own_ignored = await _list_files(worktree)
    skipped = [Skipped(f"{path}/", reason) for path, reason in _UNOPENED.findall(changed.err)]
    # The files that the person tracks although they are ignored.
    forced = set(names_in(ignored.need()))
    # The files that were saved before they became ignored.
    hidden = set(names_in(own_ignored.need())) - forced
    choice = _choose(worktree, [path for path in names_in(changed.need()) if path not in hidden] + [*forced], rules)
    tracked = await _tracked(worktree, choice.huge)
    for path in choice.huge:
        if path in tracked:
            choice.add.append(path)
        else:
            size = os.path.getsize(os.path.join(worktree.top, path)) / 2**20
            limit = rules.max_file_size / 2**20
            choice.skip(path, f"untracked and large: {size:.0f} MB, and the limit is {limit:g} MB")
    choice.remove += hidden
    await _remove(worktree, choice.remove)
    skipped += choice.skipped
    skipped += await save(worktree, choice.add)
    tree = (await worktree.git("write-tree")).need().decode().strip()
    return Snapshot(tree, tuple(sorted(skipped, key=lambda each: each.path)))


async def _list_files(worktree: Worktree) -> tuple[Output, Output, Output]:
    """Return three lists of files.

    Those that changed since the last snapshot, the ignored ones in the person's index, the ignored ones in the private
    index.
    """
    found: dict[str, Output] = {}

    async def ask(key: str) -> None:
        run = worktree.theirs if key == "theirs" else worktree.git
        which = ("-o", "-m") if key == "changed" else ("-c", "-i")
        found[key] = await run("ls-files", "-z", "--exclude-standard", *which)

    async with anyio.create_task_group() as tasks:
        for key in ("changed", "theirs", "ours"):
            tasks.start_soon(ask, key)
    return found["changed"], found["theirs"], found["ours"]


class _Choice:
    """The paths to add to the private index and to remove from it, and the paths that are skipped."""

    def __init__(self) -> None:
        self.add: list[str] = []
        self.remove: list[str] = []
        self.huge: list[str] = []
        self.skipped: list[Skipped] = []

    def skip(self, path: str, reason: str) -> None:
        """Skip a path, and remove its old version from the private index."""
        self.skipped.append(Skipped(path, reason))
        self.remove.append(path)


def _choose(worktree: Worktree, paths: Iterable[str], rules: Rules) -> _Choice:
    choice = _Choice()
    known: dict[str, bool] = {}
    for path in dict.fromkeys(paths):
        full = os.path.join(worktree.top, path)
        if path.endswith("/"):
            choice.skipped.append(Skipped(path, "a git repository of its own: the files in it are not saved"))
            continue
        if rules.leaves(path):
            choice.skip(path, "left alone")
            continue
        try:
            found = os.lstat(full) if real_parents(worktree.top, path, known) else None
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError as exc:
            choice.skip(path, f"cannot be read: {os_reason(exc)}")
            continue
        if found is None or stat.S_ISDIR(found.st_mode):
            choice.remove.append(path)
        elif stat.S_ISLNK(found.st_mode):
            choice.add.append(path)
        elif not stat.S_ISREG(found.st_mode):
            choice.skip(path, "neither a file nor a symlink")
        elif not os.access(full, os.R_OK):
            choice.skip(path, "cannot be read: Permission denied")
        else:
            (choice.huge if found.st_size > rules.max_file_size else choice.add).append(path)
    return choice


async def _tracked(worktree: Worktree, paths: Sequence[str]) -> set[str]:
    """Return those of `paths` that are in the person's index."""
    return (
        set(names_in((await worktree.theirs("--literal-pathspecs", "ls-files", "-z", "--", *paths)).need()))
        if paths
        else set()
    )


async def _remove(worktree: Worktree, paths: Collection[str]) -> None:
    if paths:
        (await worktree.git("update-index", "--force-remove", "-z", "--stdin", stdin=listed(paths))).need()


async def save(worktree: Worktree, paths: Sequence[str]) -> list[Skipped]:
    """Add files to the private index with their bytes on the disk; return the files that git could not add."""
    skipped: list[Skipped] = []
    left = list(paths)
    while left:
        arguments = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        done = await worktree.git(*arguments, stdin=listed(left))
        if not done.code:
            break
        match = _UNPROCESSED.search(done.err)
        path = match[1].strip("\n") if match else ""
        if path not in left or len(skipped) == _MANY_FAILURES:
            done.need()
        reason = done.err.partition("\n")[0].removeprefix("error: ")
        skipped.append(Skipped(path, f"cannot be saved: {reason}"))
        left.remove(path)
        await _remove(worktree, [path])
    return skipped
