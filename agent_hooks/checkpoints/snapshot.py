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
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import anyio
import anyio.to_thread
from msgspec import Struct

from agent_hooks.checkpoints.git import (
    CheckpointError,
    GitTimeoutError,
    Worktree,
    listed,
    names_in,
    private_directory,
    real_parents,
)
from agent_hooks.checkpoints.growth import note_written, size_of
from agent_hooks.checkpoints.listing import Found, list_files, note_listing
from agent_hooks.checkpoints.refused import is_suspect, save_refused, stored_name
from agent_hooks.checkpoints.rights import are_known, note_rights
from agent_hooks.errors import os_reason
from agent_hooks.settings import PROJECT_DIRECTORY, agent_home
from agent_hooks.storage.files import StorageError

# Session files are never saved: a restore must not rewind a conversation.
_SESSIONS = f"/{PROJECT_DIRECTORY}/sessions/"
_MANY_FAILURES = 100
# Repositories inside of each other.
_DEEPEST = 20
_LARGE = "too large: only the other files of this repository are saved"
_IRREGULAR = "neither a file nor a symlink, so git does not read it"
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
    """Return the rules; relative paths in `leave` begin at `cwd`.  The agent home is left in any case."""
    paths = (agent_home(), *(os.path.join(cwd, path) for path in leave))
    real = (os.path.relpath(os.path.realpath(path), os.path.realpath(worktree.top)) for path in paths)
    return Rules(max_file_size, frozenset(path for path in real if not path.startswith("..")))


def printable(path: str) -> str:
    """Return a path for a person's screen: unchanged, or quoted when it has characters that cannot be printed."""
    return path if path.isprintable() else ascii(path)


async def take(worktree: Worktree, rules: Rules, *, quick: bool = False, keep_hidden: bool | None = None) -> Snapshot:
    """Write the working tree as a git tree; the caller holds the lock.  Raises `CheckpointError`.

    `quick`: do not ask again which files are ignored, as long as the answer is the same.  `keep_hidden`: files that were
    saved before stay saved, although they are ignored now.  With `True`, a turn may have made them ignored, so the
    following snapshots save them too.
    """
    if not are_known(worktree.store):
        # Without the rights of the files, all files are saved again, and their rights are noted.
        with suppress(OSError):
            os.unlink(worktree.index)
    borrowing = not worktree.is_whole
    try:
        return await _take(worktree, rules, quick=quick, keep_hidden=keep_hidden, borrowing=borrowing)
    except GitTimeoutError:
        raise
    except CheckpointError:
        if not borrowing and not os.path.exists(worktree.index):
            raise
        # The private index is damaged or names objects that are gone, or objects of the repository are damaged.  git can
        # make all of them from the files.
        with suppress(FileNotFoundError):
            os.unlink(worktree.index)
        return await _take(worktree, rules, quick=False, keep_hidden=keep_hidden, borrowing=False)


async def _take(
    worktree: Worktree, rules: Rules, *, quick: bool, keep_hidden: bool | None, borrowing: bool
) -> Snapshot:
    found = await list_files(worktree, quick=quick, keep_hidden=keep_hidden)
    for _ in range(_DEEPEST):
        new = [path for path in found.new if not rules.leaves(path)]
        refused = await save_refused(worktree, found.stored, new, found.known, rules.max_file_size)
        inner = (os.path.join(private_directory(os.path.join(worktree.top, unit)), "objects") for unit in refused.units)
        worktree.lenders += sorted({*inner} - {*worktree.lenders})
        if not any(path.endswith("/") for path in new):
            break
        # Now git lists the files of these repositories too.
        found = await list_files(worktree, quick=False, keep_hidden=keep_hidden)
    skipped = [Skipped(f"{path}/", reason) for path, reason in _UNOPENED.findall(found.err)]
    choice = _choose(worktree, [path for path in found.changed if path not in found.hidden] + [*found.forced], rules)
    large = await _sort_large(worktree, choice, found, rules)
    # The private index lacks the new ones anyway.
    choice.remove = [path for path in choice.remove if path not in found.new]
    choice.remove += found.hidden
    skipped += choice.skipped
    skipped += (Skipped(f"{path}/", _LARGE) for path in refused.large)
    last = found.last
    if last is not None and not refused.is_changed and not choice.add and not choice.remove:
        tree = last.tree
    else:
        await _remove(worktree, choice.remove)
        first = not worktree.is_whole
        skipped += await save(worktree, choice.add, borrowing=borrowing, count=not first)
        tree = await write_tree(worktree, borrowing=borrowing)
        if first:
            await _pack(worktree, tree, borrowing=borrowing)
    skipped += (Skipped(path, _IRREGULAR) for path in worktree.pipes.irregular)
    waiting = found.forced if last is None else frozenset(last.waiting)
    note_listing(worktree, found, tree, waiting - {*choice.add}, large, refused.known)
    return Snapshot(tree, tuple(sorted(skipped, key=lambda each: each.path)))


async def _sort_large(worktree: Worktree, choice: _Choice, found: Found, rules: Rules) -> frozenset[str]:
    """Choose the large files that are tracked; return the others, which are skipped."""
    known = {*choice.huge} & {*(found.last.large if found.last else ())}
    tracked = await _tracked(worktree, [path for path in choice.huge if path not in known])
    for path in choice.huge:
        if path in tracked:
            choice.add.append(path)
        else:
            size = os.path.getsize(os.path.join(worktree.top, path)) / 2**20
            limit = rules.max_file_size / 2**20
            choice.skip(path, f"untracked and large: {size:.0f} MB, and the limit is {limit:g} MB")
    return frozenset(choice.huge) - tracked


async def write_tree(worktree: Worktree, *, borrowing: bool = False) -> str:
    """Write the private index as a tree, and return its name."""
    return (await worktree.git("write-tree", borrowing=borrowing)).need().decode().strip()


async def _pack(worktree: Worktree, tree: str, *, borrowing: bool) -> None:
    """Copy all objects of a tree into the store, borrowed ones as they are packed in the repository.

    Without this, the first checkpoint of a large repository would write a file for each of its files.  The copies are
    hashed, because the repository may be damaged, or may hold forged objects.
    """
    pack = os.path.join(worktree.store, "objects", "pack")
    await anyio.to_thread.run_sync(partial(os.makedirs, pack, exist_ok=True))
    words = ("pack-objects", "--quiet", "--revs", "--window=0", "--delta-base-offset", os.path.join(pack, "pack"))
    done = await worktree.git(*words, stdin=f"{tree}\n".encode(), borrowing=borrowing)
    made = os.path.join(pack, f"pack-{done.need().decode().strip()}")
    if borrowing and (checked := await worktree.git("verify-pack", f"{made}.idx")).code:
        for ending in (".idx", ".pack", ".rev"):
            with suppress(FileNotFoundError):
                os.unlink(made + ending)
        checked.need()
    # git has written new objects as files of their own before.
    (await worktree.git("prune-packed", "--quiet")).need()
    note_written(size_of([f"{made}.idx", f"{made}.pack"]))
    worktree.become_whole()


async def ignored_paths(worktree: Worktree) -> tuple[str, ...]:
    """Return the paths that git ignores, which no checkpoint holds; a directory that is ignored ends with `/`."""
    asked = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
    found = names_in((await worktree.git(*asked)).out)
    return tuple(sorted(path for path in found if not _of_sessions(worktree.top, path)))


def _of_sessions(top: str, path: str) -> bool:
    """Tell whether an ignored path has session files and no others."""
    if _SESSIONS in f"/{path}":
        return True
    if not f"/{path}".endswith(f"/{PROJECT_DIRECTORY}/"):
        return False
    with suppress(OSError):
        return os.listdir(os.path.join(top, path)) == [os.path.basename(_SESSIONS[:-1])]
    return False


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
        if rules.leaves(path):
            choice.skip(path, "left alone")
            continue
        if is_suspect(path) and stored_name(path, link=os.path.islink(full)) != path:
            # Saved by `refused`.
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
    """Return the paths among `paths` that are in the user's index."""
    # A command line may be too short for all of the paths.
    return {*paths} & {*names_in((await worktree.theirs("ls-files", "-z")).out)} if paths else set()


async def _remove(worktree: Worktree, paths: Collection[str]) -> None:
    if paths:
        (await worktree.git("update-index", "--force-remove", "-z", "--stdin", stdin=listed(paths))).need()


async def save(
    worktree: Worktree, paths: Sequence[str], *, borrowing: bool = False, count: bool = True
) -> list[Skipped]:
    """Add files to the private index with their bytes on the disk, and return the files that git could not add.

    `count`: the files are new objects of the store.
    """
    skipped: list[Skipped] = []
    left = list(paths)
    while left:
        arguments = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        done = await worktree.git(*arguments, stdin=listed(left), borrowing=borrowing)
        if not done.code:
            break
        match = _UNPROCESSED.search(done.err)
        path = match[1].strip("\n") if match else ""
        path = next((each for each in left if _shown(each) == path), "")
        if path not in left or len(skipped) == _MANY_FAILURES:
            done.need()
        reason = done.err.partition("\n")[0].removeprefix("error: ")
        skipped.append(Skipped(path, f"cannot be saved: {reason}"))
        left.remove(path)
        await _remove(worktree, [path])
    try:
        await anyio.to_thread.run_sync(note_rights, worktree.store, worktree.top, left)
    except (OSError, StorageError) as exc:
        raise worktree.failed(exc) from None
    if count:
        # The first checkpoint writes most of its objects as a pack, which is counted there.
        files = [os.path.join(worktree.top, path) for path in left]
        note_written(await anyio.to_thread.run_sync(size_of, files))
    return skipped


def _shown(path: str) -> str:
    """Return a path as it is in the text of git's messages."""
    return os.fsencode(path).decode(errors="replace")
