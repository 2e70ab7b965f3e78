"""From the working tree to a git tree: which files are saved, and which are not and why.

Git lists what differs from the private index, this decides, git hashes what is left.  Never the person's index: a file
counts as tracked or ignored as git sees it, but is saved as it lies on the disk.  Above: store, restore.  Below: git.
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

_SESSIONS = f"/{PROJECT_DIRECTORY}/sessions/"  # the conversation itself is nothing to take back
_MANY_FAILURES = 100
_UNOPENED = re.compile(r"could not open directory '(.*?)/?': (.*)")
_UNPROCESSED = re.compile(r"Unable to process path (.*)", re.DOTALL)


class Skipped(Struct, frozen=True):
    """A path that is not saved, or not restored, and why; relative to the top, with a `/` at the end for a directory."""

    path: str
    reason: str

    def __str__(self) -> str:
        """Return `path: reason`, for a person."""
        return f"{printable(self.path)}: {self.reason}"


class Snapshot(NamedTuple):
    """The tree that was written, and what is missing in it."""

    tree: str
    skipped: tuple[Skipped, ...]


class Rules(NamedTuple):
    """What is not saved: untracked files larger than `max_file_size` bytes, and the paths in `leave`."""

    max_file_size: int
    leave: frozenset[str] = frozenset()

    def leaves(self, path: str) -> bool:
        """Tell whether a path is none of our business: neither saved nor restored."""
        return _SESSIONS in f"/{path}" or any(path == each or path.startswith(f"{each}/") for each in self.leave)


def rules(worktree: Worktree, cwd: str | os.PathLike[str], max_file_size: int, leave: Collection[str]) -> Rules:
    """Return the rules, with the paths to leave alone taken from `cwd`."""
    return Rules(
        max_file_size,
        frozenset(os.path.relpath(os.path.realpath(os.path.join(cwd, path)), worktree.top) for path in leave),
    )


def printable(path: str) -> str:
    """Return a path for a person's screen: as it is, or quoted when it holds what no screen should be sent."""
    return path if path.isprintable() else ascii(path)


async def take(worktree: Worktree, rules: Rules) -> Snapshot:
    """Write the working tree as a git tree; hold the lock.  Raises `CheckpointError`."""
    try:
        return await _take(worktree, rules)
    except CheckpointError:
        if not os.path.exists(worktree.index):
            raise
        os.unlink(worktree.index)  # damaged, or it names objects that are gone: it holds nothing but what git can redo
        return await _take(worktree, rules)


async def _take(worktree: Worktree, rules: Rules) -> Snapshot:
    changed, ignored, own_ignored = await _look(worktree)
    skipped = [Skipped(f"{path}/", reason) for path, reason in _UNOPENED.findall(changed.err)]
    forced = set(names_in(ignored.need()))  # tracked although ignored
    hidden = set(names_in(own_ignored.need())) - forced  # they were saved before they became ignored
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


async def _look(worktree: Worktree) -> tuple[Output, Output, Output]:
    """Return what changed since the last snapshot, what the person tracks though ignored, and what we do."""
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
    """What becomes of the paths that git listed."""

    def __init__(self) -> None:
        self.add: list[str] = []
        self.remove: list[str] = []
        self.huge: list[str] = []
        self.skipped: list[Skipped] = []

    def skip(self, path: str, reason: str) -> None:
        """Leave a path out, and what was known of it."""
        self.skipped.append(Skipped(path, reason))
        self.remove.append(path)


def _choose(worktree: Worktree, paths: Iterable[str], rules: Rules) -> _Choice:
    choice = _Choice()
    known: dict[str, bool] = {}
    for path in dict.fromkeys(paths):
        full = os.path.join(worktree.top, path)
        if path.endswith("/"):
            choice.skipped.append(Skipped(path, "a git repository of its own: what is in it is not saved"))
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
    """Put files into the private index as they lie on the disk; return those that could not be, and why."""
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
