"""List the files that a snapshot has to look at, with as few git processes as possible.

git is asked for four lists at a time: the untracked files, the files whose status is not that of the private index (their
rights count too), the ignored files in the person's index, and those in the private index.  The last two depend on the
indexes and on the ignore files alone, so a quick listing leaves them out while these are the same.  An ignore file that
itself is ignored is the exception; the next full listing counts it, at the end of the turn.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

import anyio
import anyio.to_thread
from msgspec import Struct

from agent_hooks.checkpoints.facts import Signature, signature
from agent_hooks.checkpoints.git import Output, Worktree, names_in
from agent_hooks.checkpoints.json_text import decoded, encoded
from agent_hooks.checkpoints.refused import Known, git_directory, real_name
from agent_hooks.storage.files import StorageError, read_regular, write_atomically

_NAME = "listing"
_LONGEST = 1 << 26
_FILES = ("ls-files", "-z", "--exclude-standard")
_LISTS = {
    "new": (*_FILES, "-o"),
    # Unlike `ls-files -m`, this names a file with other rights and the same content.
    "changed": ("diff-files", "-z", "--name-only", "--ignore-submodules=all"),
    "theirs": (*_FILES, "-c", "-i"),
    "ours": (*_FILES, "-c", "-i"),
}
_DIRECTORIES = ("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree")
_IGNORE_FILE = ".gitignore"


class Listing(Struct, frozen=True):
    """The state of the last snapshot: what its lists came from, and its tree.

    `waiting`: the ignored files in the user's index that were not there to be saved.
    `large`: the files that were found to be untracked and large.
    `refused`: the files that git refuses.
    `held`: the ignored files that stay saved, because a turn may have made them ignored.
    """

    files: dict[str, Signature]
    index: Signature
    tree: str
    waiting: tuple[str, ...] = ()
    large: tuple[str, ...] = ()
    refused: dict[str, tuple[tuple[int, ...], str]] = {}
    held: tuple[str, ...] = ()


class Found(NamedTuple):
    """The files to look at.

    `changed`: all files that differ from the private index, or that it lacks.
    `new`: all files that it lacks.
    `forced`: the ignored files that the user tracks.
    `hidden`: the files that were saved before they became ignored.
    `last`: the last snapshot, unless other files may be ignored by now.
    `err`: git's messages.
    `stored`: the files that git refuses, by their names in the private index.
    `known`: the files that git refuses, as they were saved before.
    `held`: the ignored files that stay saved, because a turn may have made them ignored.
    """

    changed: tuple[str, ...]
    new: frozenset[str]
    forced: frozenset[str]
    hidden: frozenset[str]
    last: Listing | None
    err: str
    stored: frozenset[str]
    known: Known
    held: frozenset[str]


async def list_files(worktree: Worktree, *, quick: bool, keep_hidden: bool | None) -> Found:
    """List the files.  Raises `CheckpointError`.

    `quick`: leave out what is as at the last snapshot.  `keep_hidden`: as for `take`.
    """
    former = _last(worktree)
    last = former if quick and former is not None and _holds(worktree, former) else None
    keys = ("new", "changed") if last else ("new", "changed", "theirs", "ours")
    outputs = await _ask(worktree, keys, "" if former is None else former.tree)
    new = names_in(outputs["new"].need())
    differing = names_in(outputs["changed"].need())
    # No file has such a name, so git lists all of them.
    stored = frozenset(path for path in differing if real_name(path) != path)
    new += await _unseen(worktree, names_in(outputs["directories"].out) if former else [], stored)
    changed = (*new, *(path for path in differing if path not in stored))
    if last is not None and any(os.path.basename(path) == _IGNORE_FILE for path in changed):
        last = None
        outputs |= await _ask(worktree, ("theirs", "ours"), "")
    held = frozenset(() if former is None else former.held)
    if last is not None:
        forced = frozenset(path for path in last.waiting if os.path.lexists(os.path.join(worktree.top, path)))
        hidden: frozenset[str] = frozenset()
    else:
        # The files that the person tracks although they are ignored.
        theirs = outputs["theirs"]
        forced = frozenset(names_in(theirs.out)) if not theirs.code else frozenset()
        # The files that were saved before they became ignored.  They stay while a turn continues, and where git cannot
        # read the user's index.
        ignored = frozenset(names_in(outputs["ours"].need())) - forced - stored
        held = ignored if keep_hidden else held & ignored
        hidden = ignored - held if keep_hidden is False and not theirs.code else frozenset()
    known = {} if former is None else former.refused
    return Found(changed, frozenset(new), forced, hidden, last, outputs["new"].err, stored, known, held)


def note_listing(
    worktree: Worktree, found: Found, tree: str, waiting: frozenset[str], large: frozenset[str], refused: Known
) -> None:
    """Note the state of a snapshot for the next quick listing; without it, the next one is full."""
    last = found.last
    listing = Listing(
        _files(worktree, tree),
        signature(worktree.index),
        tree,
        tuple(sorted(waiting)),
        tuple(sorted(large | {*(last.large if last else ())})),
        dict(refused),
        tuple(sorted(found.held)),
    )
    if listing != last:
        with suppress(OSError, StorageError):
            write_atomically(os.path.join(worktree.store, _NAME), encoded(listing), secret=True)


async def _unseen(worktree: Worktree, directories: list[str], stored: frozenset[str]) -> list[str]:
    """Return the saved directories that have become repositories since.  git lists their files and no repository."""
    known = {git_directory(real_name(path)) for path in stored}

    def look() -> list[str]:
        asked = (path for path in directories if real_name(path) == path and f"{path}/.git" not in known)
        return [f"{path}/" for path in asked if os.path.lexists(os.path.join(worktree.top, path, ".git"))]

    return await anyio.to_thread.run_sync(look) if directories else []


async def _ask(worktree: Worktree, keys: tuple[str, ...], tree: str) -> dict[str, Output]:
    """Return git's lists, and the directories of a tree, if it has a name."""
    found: dict[str, Output] = {}

    async def ask(key: str, *words: str) -> None:
        run = worktree.theirs if key == "theirs" else worktree.git
        found[key] = await run(*words)

    async with anyio.create_task_group() as tasks:
        for key in keys:
            tasks.start_soon(ask, key, *_LISTS[key])
        if tree:
            tasks.start_soon(ask, "directories", *_DIRECTORIES, tree)
    return found


def _last(worktree: Worktree) -> Listing | None:
    """Return the state of the last snapshot."""
    path = os.path.join(worktree.store, _NAME)
    try:
        return decoded(read_regular(path, path, _LONGEST), Listing)
    except (OSError, StorageError, ValueError, RecursionError):
        return None


def _holds(worktree: Worktree, listing: Listing) -> bool:
    """Return whether the same files are ignored as at the last snapshot."""
    same = worktree.is_whole and listing.index == signature(worktree.index) and listing.index is not None
    return same and listing.files == _files(worktree, listing.tree)


def _files(worktree: Worktree, tree: str) -> dict[str, Signature]:
    """Return the signatures of the files that decide what is tracked and ignored, and of those that hold the tree."""
    paths = [os.path.join(worktree.store, "info", "exclude"), worktree.excludes]
    if worktree.repository is not None:
        paths.append(os.path.join(worktree.repository, "index"))
    objects = os.path.join(worktree.store, "objects")
    paths.append(os.path.join(objects, tree[:2], tree[2:]))
    with suppress(OSError):
        paths += [entry.path for entry in os.scandir(os.path.join(objects, "pack"))]
    return {path: signature(path) for path in paths}
