"""Remove what is too old or too much from the stores: after 30 days, or above 1 GiB.

Age is looked at once a day.  The sizes are also looked at whenever the checkpoints of all stores have written `GROWTH`
bytes, so that a busy day stays near the limit.

A process of its own removes them, so no turn waits, and it gives way to a turn that needs the store.

The oldest go first: stores of working trees that no agent works in any more, then the marks and checkpoints of the
present one.  The newest turn stays in any case.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from subprocess import DEVNULL

import anyio
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
LIMIT = 600.0
"""Seconds that a removal may take, with the wait for the lock."""
_DAY = 86_400.0
# The time between two looks for a process that waits for the lock.
_LOOK = 0.05
# Starts the words behind it as a process that nothing waits for.
_DETACHED = '"$0" "$@" </dev/null >/dev/null 2>&1 &'
# The time after which a removal that was ended is tried again.
_AGAIN = 3_600.0
FINISH = "finish"
"""Has the process in the background save the files of a checkpoint that took too long."""
GROWTH = 128 << 20
"""Bytes that all checkpoints together write until the sizes of the stores are looked at again."""
# Loose objects above which git packs them.
_LOOSE = 4_000
# Files whose times tell when the store was pruned, and when that took too long.
_PRUNED, _ENDED = "pruned", "prune-ended"


async def prune_when_due(worktree: Worktree) -> None:
    """Start a process that removes old and surplus checkpoints, if the last look was long ago; no turn waits for it."""
    ended, pruned = (os.path.join(worktree.store, name) for name in (_ENDED, _PRUNED))
    if _age(ended) < _AGAIN:
        return
    if not os.path.exists(ended) and not os.path.exists(pruned):
        # The first day of a store begins now.
        _touch(pruned)
    if _is_due(worktree.store) or written() >= GROWTH:
        await start_removal(worktree)


def _is_due(store: str) -> bool:
    """Tell whether a day has passed since the last removal, or many objects have come."""
    return _age(os.path.join(store, _PRUNED)) > _DAY or _loose(store) > _LOOSE


async def start_removal(worktree: Worktree, *words: str) -> None:
    """Start the process that removes checkpoints.  With the word `FINISH`, it first saves the present files."""
    words = (sys.executable, "-P", "-s", "-m", "agent_hooks.checkpoints.removal", worktree.top, *words)
    try:
        # The shell ends at once, so the process has no parent that would have to wait for its end.
        await anyio.run_process(
            ["/bin/sh", "-c", _DETACHED, *words], stdin=DEVNULL, start_new_session=True, check=False
        )
    except OSError as exc:
        log().warning("%s: the process that removes old checkpoints cannot be started: %s", worktree.store, exc)


async def remove_in_background(worktree: Worktree) -> None:
    """Remove old and surplus checkpoints, and give way to a turn that needs the store.  Raises `CheckpointError`.

    A removal that gives way, or takes longer than `LIMIT`, is ended, and tried again after an hour.  Nothing is lost that
    was to stay.
    """
    with move_on_after(LIMIT) as scope:
        async with worktree.locked(wait=False):
            worktree.forget_waiters()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_give_way, worktree, scope)
                if _is_due(worktree.store) or await anyio.to_thread.run_sync(_has_outgrown, abandon_on_cancel=True):
                    await prune_store(worktree)
                tasks.cancel_scope.cancel()
    if scope.cancelled_caught:
        log().info("%s: old checkpoints were not removed; the removal is tried again later", worktree.store)
        _touch(os.path.join(worktree.store, _ENDED))
        with suppress(OSError):
            os.unlink(os.path.join(worktree.store, _PRUNED))


def _has_outgrown() -> bool:
    """Tell whether all stores together are above the limit; their files are looked at only after some growth."""
    if written() < GROWTH:
        return False
    begin_count()
    return _size_of_all() > BYTES


async def _give_way(worktree: Worktree, scope: anyio.CancelScope) -> None:
    """Cancel the removal as soon as another process waits for the lock."""
    while not worktree.has_waiters:
        await anyio.sleep(_LOOK)
    scope.cancel()


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
    (await worktree.git("gc", "--quiet", "--prune=now", limit=LIMIT)).need()


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
