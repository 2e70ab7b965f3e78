"""Mend a store that was damaged, by a loss of power for example.

Objects that are cut or empty are removed: git takes them for present, and would never write them again.  The private
index goes as well, so the next checkpoint writes each object of the present files that is missing.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress

import anyio
import anyio.to_thread

from agent_hooks.checkpoints.git import Worktree


async def mend(worktree: Worktree) -> None:
    """Remove what is damaged in a store; the caller holds the lock.  Raises `CheckpointError`."""
    await anyio.to_thread.run_sync(_remove_damaged, worktree)
    for pack in _packs(worktree):
        if (await worktree.git("verify-pack", pack)).code:
            await _salvage(worktree, pack)
    with suppress(OSError):
        os.unlink(worktree.index)


async def readable_trees(worktree: Worktree, trees: Collection[str]) -> frozenset[str]:
    """Return those trees of which git has each directory."""
    return frozenset([tree for tree in trees if not (await worktree.git("ls-tree", "-r", "-z", tree)).code])


def _remove_damaged(worktree: Worktree) -> None:
    for path, name in _loose(worktree.store):
        with suppress(OSError):
            if not _is_whole(path, name, worktree.object_format):
                os.unlink(path)


def _loose(store: str) -> Iterator[tuple[str, str]]:
    """Yield path and name of each object that is a file of its own."""
    objects = os.path.join(store, "objects")
    for first in _listed(objects):
        if len(first) == 2:
            for rest in _listed(os.path.join(objects, first)):
                yield os.path.join(objects, first, rest), first + rest


def _is_whole(path: str, name: str, object_format: str) -> bool:
    """Tell whether the content of an object has its name; raises `OSError`."""
    digest, unpacker = hashlib.new(object_format, usedforsecurity=False), zlib.decompressobj()
    with open(path, "rb") as file:
        try:
            for chunk in iter(lambda: file.read(1 << 20), b""):
                digest.update(unpacker.decompress(chunk))
        except zlib.error:
            return False
    return unpacker.eof and digest.hexdigest() == name


def _packs(worktree: Worktree) -> list[str]:
    directory = os.path.join(worktree.store, "objects", "pack")
    return [os.path.join(directory, name) for name in _listed(directory) if name.endswith(".idx")]


async def _salvage(worktree: Worktree, index: str) -> None:
    """Take the objects that can be read out of a damaged pack, and remove it."""
    pack = f"{index.removesuffix('.idx')}.pack"
    data = b""
    with suppress(OSError):
        data = await anyio.Path(pack).read_bytes()
    for path in (index, pack):
        with suppress(OSError):
            os.unlink(path)
    if data:
        await worktree.git("unpack-objects", "-q", "-r", stdin=data)


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
