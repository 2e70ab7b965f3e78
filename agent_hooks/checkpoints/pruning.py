"""Remove what is too old or too much from the stores: after 30 days, or above 1 GiB.

Age is looked at once a day.  The sizes are also looked at whenever the checkpoints of all stores have written `GROWTH`
bytes, so that a busy day stays near the limit.

The oldest go first: stores of working trees that no agent works in any more, then the marks and checkpoints of the
present one.  The newest turn stays in any case.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress

import anyio.to_thread
from anyio import move_on_after

from agent_hooks.checkpoints.git import Worktree
from agent_hooks.checkpoints.growth import begin_count, written
from agent_hooks.checkpoints.marks import Mark, read_marks, remove_marks
from agent_hooks.checkpoints.rights import forget_rights
from agent_hooks.checkpoints.store import forget, kept
from agent_hooks.checkpoints.stores import all_stores
from agent_hooks.errors import log
from agent_hooks.storage.locks import try_lock

DAYS = 30
"""Days for which a checkpoint is kept."""
BYTES = 1 << 30
"""The most bytes of all stores together."""
LIMIT = 10.0
"""Seconds that the removal at the end of a turn may take, with the wait for the lock; the turn does not wait longer."""
_DAY = 86_400.0
# The time after which a removal that was ended is tried again.
_AGAIN = 3_600.0
GROWTH = 128 << 20
"""Bytes that all checkpoints together write until the sizes of the stores are looked at again."""
# Loose objects above which git packs them.
_LOOSE = 4_000
# Files whose times tell when the store was pruned, and when that took too long.
_PRUNED, _ENDED = "pruned", "prune-ended"


async def prune_when_due(worktree: Worktree) -> None:
    """Remove what is too old or too much, if it is time to look.  Raises `CheckpointError`.

    It is time once a day, when many objects have come, and when the stores have grown above the limit.  A removal that
    takes longer than `LIMIT` is ended, and tried again after an hour.  Nothing is lost that was to stay.
    """
    ended = os.path.join(worktree.store, _ENDED)
    if _age(ended) < _AGAIN:
        return
    pruned = os.path.join(worktree.store, _PRUNED)
    with move_on_after(LIMIT) as scope:
        due = _age(pruned) > _DAY or _loose(worktree.store) > _LOOSE
        if due or await anyio.to_thread.run_sync(_has_outgrown, abandon_on_cancel=True):
            async with worktree.locked():
                await prune_store(worktree)
    if scope.cancelled_caught:
        log().warning("%s: what is too old was not removed within %g s; tried again later", worktree.store, LIMIT)
        _touch(ended)
        with suppress(OSError):
            os.unlink(pruned)


def _has_outgrown() -> bool:
    """Tell whether all stores together are above the limit; their files are looked at only after some growth."""
    if written() < GROWTH:
        return False
    begin_count()
    return _size_of_all() > BYTES


async def prune_store(worktree: Worktree, *, days: float = DAYS, most: int | None = None) -> None:
    """Remove what is too old or too much; the caller holds the lock.  Raises `CheckpointError`.

    `most`: the limit in bytes, `None` for `BYTES`.
    """
    most = BYTES if most is None else most
    begin_count()
    await anyio.to_thread.run_sync(_touch, os.path.join(worktree.store, _PRUNED))
    # A caller that has waited long enough leaves a thread alone that touches no file of this store.
    await anyio.to_thread.run_sync(_remove_others, worktree.store, days, abandon_on_cancel=True)
    await _forget_before(worktree, time.time() - days * _DAY)
    await anyio.to_thread.run_sync(forget_rights, worktree.store, worktree.top, time.time() - days * _DAY)
    await _clean(worktree)
    while True:
        size = await anyio.to_thread.run_sync(_size_of_all, abandon_on_cancel=True)
        if size <= most:
            return
        if await anyio.to_thread.run_sync(_remove_oldest_other, worktree.store, abandon_on_cancel=True):
            continue
        marks = read_marks(worktree)
        begun = [mark for mark in marks if mark.kind in ("begin", "before-undo")]
        if len(begun) < 2:
            return
        # The older half goes at once, because each cleaning rewrites the store.
        await _forget_before(worktree, begun[(len(begun) + 1) // 2].created)
        await _clean(worktree)


async def _forget_before(worktree: Worktree, limit: float) -> None:
    remove_marks(worktree, _older(read_marks(worktree), limit))
    await forget(worktree, [each for each in await kept(worktree) if each.created < limit and each.session_id])


def _touch(path: str) -> None:
    with suppress(OSError), open(path, "wb"):
        pass


def _older(marks: list[Mark], limit: float) -> list[Mark]:
    return [mark for mark in marks if mark.created < limit]


async def _clean(worktree: Worktree) -> None:
    (await worktree.git("gc", "--quiet", "--prune=now")).need()


def _remove_others(store: str, days: float) -> None:
    """Remove the stores in which no checkpoint was made for so long."""
    for each in all_stores():
        if each != store and _used(each) > days * _DAY:
            _remove(each)


def _remove_oldest_other(store: str) -> bool:
    """Remove the store that was not used for the longest time, at least a day, and return whether there was one."""
    others = [each for each in all_stores() if each != store and _used(each) > _DAY]
    return bool(others) and _remove(max(others, key=_used))


def _remove(store: str) -> bool:
    """Remove a store that no process has locked; return whether it is gone."""
    try:
        lock = os.open(os.path.join(store, "lock"), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if not try_lock(lock):
            return False
        shutil.rmtree(store, ignore_errors=True)
        return not os.path.exists(store)
    finally:
        os.close(lock)


def _used(store: str) -> float:
    """Return the seconds since a store was last written to."""
    return min(_age(os.path.join(store, name)) for name in ("index", "marks", "top"))


def _age(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return float("inf")


def _loose(store: str) -> int:
    """Return about how many objects are files of their own: git spreads them evenly over 256 directories."""
    with suppress(OSError):
        return len(os.listdir(os.path.join(store, "objects", "17"))) * 256
    return 0


def _size_of_all() -> int:
    return sum(_size(store) for store in all_stores())


def _size(store: str) -> int:
    total = 0
    for directory, _, names in os.walk(store):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(directory, name)).st_size
    return total
