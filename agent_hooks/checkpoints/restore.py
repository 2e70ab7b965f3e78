"""Restore the working tree from a checkpoint, after the present files were saved.

There are two trees, of the present files and of the checkpoint.  A path that differs is written, a path that only the
present tree has is deleted, and any other path stays: files that git ignores, and files that the checkpoint lacks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from os import PathLike
from typing import NamedTuple

from msgspec import Struct

from agent_hooks.checkpoints.git import CheckpointError, Worktree, listed, names_in, open_worktree, real_parents
from agent_hooks.checkpoints.snapshot import Rules, Skipped, Snapshot, rules, save, take
from agent_hooks.checkpoints.store import MAX_FILE_SIZE, Checkpoint, is_undo, keep_for_undo, kept
from agent_hooks.errors import os_reason

# In a submodule git would run a git of its own, with the submodule's filters.
_NO_MODULES = ("--ignore-submodules=all",)


class Restored(Struct, frozen=True):
    """The result of a restore.

    `written`, `deleted`: the changed files; `left`: the paths that were not restored, each with the reason; `undo`: the
    checkpoint of the files before the restore.
    """

    checkpoint: Checkpoint
    undo: Checkpoint
    written: tuple[str, ...]
    deleted: tuple[str, ...]
    left: tuple[Skipped, ...]


class Change(NamedTuple):
    """A path that differs between two trees; `kind` is `A` (only in the second), `D` (only in the first), `M` or `T`."""

    kind: str
    path: str


class Diff(Struct, frozen=True):
    """The changes since a checkpoint: the paths, and a patch in the form of `git diff`."""

    changes: tuple[Change, ...]
    patch: str


async def restore(
    cwd: str | PathLike[str],
    checkpoint: Checkpoint,
    *,
    max_file_size: int = MAX_FILE_SIZE,
    leave: Collection[str] = (),
) -> Restored:
    """Save the present files for `undo`, then restore the files of the checkpoint.

    Ignored files, the files that the checkpoint skipped, and the paths in `leave` are not touched; nor are index, stash,
    HEAD and branches.  `left` of the result has the paths that could not be restored.
    Raises `CheckpointError` when there is no working tree, the checkpoint belongs to another one, or the present files
    cannot be saved; no file is changed then.  When git fails later, the text of the `CheckpointError` says that the
    restore stopped in the middle.
    """
    worktree = await open_worktree(cwd)
    if checkpoint.top != worktree.top and os.path.isdir(checkpoint.top):
        raise CheckpointError(f"this checkpoint is one of {checkpoint.top}, not of {worktree.top}: restore it there")
    async with worktree.locked():
        if (await worktree.git("cat-file", "-e", f"{checkpoint.tree}^{{tree}}")).code:
            raise CheckpointError(f"checkpoint {checkpoint.name} is gone: it was pruned, and git has cleaned up")
        work = _Restore(worktree, checkpoint, rules(worktree, cwd, max_file_size, leave), os.path.realpath(cwd))
        now = await work.save_now()
        before = await keep_for_undo(worktree, checkpoint.session_id, now)
        try:
            await work.apply(now.tree)
        except CheckpointError as exc:
            raise CheckpointError(f"the restore stopped in the middle, and undo takes it back: {exc}") from None
    return Restored(
        checkpoint,
        before,
        tuple(sorted(work.written)),
        tuple(sorted(work.deleted)),
        tuple(Skipped(path, reason) for path, reason in sorted(work.left.items())),
    )


async def undo(cwd: str | PathLike[str], session_id: str | None = None, *, leave: Collection[str] = ()) -> Restored:
    """Undo the last restore, of a session or of all sessions: restore the files as they were before it.

    An undo is a restore too: a second undo takes back the first.  Raises `CheckpointError` when there was no restore.
    """
    undos = [each for each in await kept(await open_worktree(cwd), session_id) if is_undo(each)]
    if not undos:
        raise CheckpointError("nothing to undo: no checkpoint has been restored here")
    return await restore(cwd, undos[-1], leave=leave)


async def diff(
    cwd: str | PathLike[str],
    checkpoint: Checkpoint,
    *,
    max_file_size: int = MAX_FILE_SIZE,
    leave: Collection[str] = (),
) -> Diff:
    """Return the changes in the working tree since the checkpoint.  Raises `CheckpointError`."""
    worktree = await open_worktree(cwd)
    async with worktree.locked():
        now = await take(worktree, rules(worktree, cwd, max_file_size, leave))
        plain = ("--no-renames", "--no-ext-diff", "--no-textconv")
        patch = await worktree.git("diff-tree", "-r", "-p", *plain, *_NO_MODULES, checkpoint.tree, now.tree)
        return Diff(await _changes(worktree, checkpoint.tree, now.tree), patch.need().decode(errors="replace"))


async def _changes(worktree: Worktree, one: str, other: str) -> tuple[Change, ...]:
    found = await worktree.git("diff-tree", "-r", "-z", "--name-status", "--no-renames", *_NO_MODULES, one, other)
    out = found.need()
    fields = names_in(out)
    return tuple(Change(kind, path) for kind, path in zip(fields[::2], fields[1::2], strict=True))


class _Restore:
    """One restore in progress."""

    def __init__(self, worktree: Worktree, checkpoint: Checkpoint, rules: Rules, cwd: str) -> None:
        self.worktree = worktree
        self.top = worktree.top
        self.checkpoint = checkpoint
        self.rules = rules
        self.cwd = cwd
        self.written: set[str] = set()
        self.deleted: set[str] = set()
        # For each path that is not restored, the reason.
        self.left: dict[str, str] = {}
        # The git repositories inside of the working tree now.
        self.nested: tuple[str, ...] = ()

    async def save_now(self) -> Snapshot:
        """Save the present files, and also ignored and large files that the restore would write over."""
        now = await take(self.worktree, self.rules)
        self.nested = tuple(each.path for each in now.skipped if each.path.endswith("/"))
        known: dict[str, bool] = {}
        unsaved = [
            change.path
            for change in await _changes(self.worktree, now.tree, self.checkpoint.tree)
            if change.kind == "A"
            and real_parents(self.top, change.path, known)
            and _is_file(os.path.join(self.top, change.path))
            and not self.rules.leaves(change.path)
        ]
        for each in await save(self.worktree, unsaved):
            self.left[each.path] = f"the present file {each.reason}"
        tree = (await self.worktree.git("write-tree")).need().decode().strip()
        saved = set(unsaved) - self.left.keys()
        return Snapshot(tree, tuple(each for each in now.skipped if each.path not in saved))

    async def apply(self, now: str) -> None:
        """Write and delete the files that differ from the checkpoint."""
        changes = await _changes(self.worktree, now, self.checkpoint.tree)
        (await self.worktree.git("read-tree", "-m", "-i", now, self.checkpoint.tree)).need()
        # The .gitignore files come first: a file that they ignore again was ignored when the checkpoint was made.
        known: dict[str, bool] = {}
        early = {
            change.path
            for change in changes
            if os.path.basename(change.path) == ".gitignore"
            and (change.kind == "D" or not self._in_the_way(change.path, known))
        }
        for first in (True, False):
            some = [change for change in changes if (change.path in early) is first]
            await self._delete([change.path for change in some if change.kind == "D"])
            await self._write([change.path for change in some if change.kind != "D"])

    async def _delete(self, paths: list[str]) -> None:
        ignored = await self._ignored(paths)
        for path in paths:
            if path in ignored:
                self.left[path] = "was ignored by git when the checkpoint was made"
            elif reason := self._keep_out(path):
                self.left[path] = reason
            else:
                try:
                    os.unlink(os.path.join(self.top, path))
                except FileNotFoundError:
                    continue
                except OSError as exc:
                    self.left[path] = f"cannot be deleted: {os_reason(exc)}"
                    continue
                self.deleted.add(path)
                self._remove_empty_parents(path)

    async def _ignored(self, paths: Iterable[str]) -> set[str]:
        if not paths:
            return set()
        # Without ./, git would take `:!x` for a pattern.
        asked = listed(f"./{path}" for path in paths)
        done = await self.worktree.git("check-ignore", "--no-index", "-z", "--stdin", stdin=asked)
        return {path[2:] for path in names_in(done.out if done.code == 1 else done.need())}

    def _remove_empty_parents(self, path: str) -> None:
        parent = os.path.join(self.top, os.path.dirname(path))
        # The first directory that is not empty ends the loop.
        with suppress(OSError):
            while parent.rstrip("/") != self.top and not f"{self.cwd}/".startswith(f"{parent}/"):
                os.rmdir(parent)
                parent = os.path.dirname(parent)

    async def _write(self, paths: list[str]) -> None:
        known: dict[str, bool] = {}
        wanted = []
        modes: dict[str, int] = {}
        for path in paths:
            if reason := self._keep_out(path) or self._in_the_way(path, known):
                self.left.setdefault(path, reason)
            elif path not in self.left:
                wanted.append(path)
                with suppress(OSError):
                    mode = os.lstat(os.path.join(self.top, path)).st_mode
                    if stat.S_ISREG(mode):
                        modes[path] = mode
        if not wanted:
            return
        done = await self.worktree.git("checkout-index", "-f", "-u", "-z", "--stdin", stdin=listed(wanted))
        for path, mode in modes.items():
            self._give_back_rights(path, mode)
        differing = set(names_in((await self.worktree.git("diff-files", "-z", "--name-only", *_NO_MODULES)).need()))
        for path in wanted:
            if path in differing:
                self.left[path] = f"cannot be written: {done.err.strip() or 'it was changed meanwhile'}"
            else:
                self.written.add(path)

    def _keep_out(self, path: str) -> str | None:
        """Return the reason why a path must not be touched, or `None`."""
        if self.rules.leaves(path):
            return "left alone"
        for each in self.checkpoint.skipped:
            if path == each.path or (each.path.endswith("/") and path.startswith(each.path)):
                return f"is not in the checkpoint: {each.reason}"
        if any(path.startswith(each) for each in self.nested):
            return "lies in a git repository of its own now"
        return None

    def _in_the_way(self, path: str, known: dict[str, bool]) -> str | None:
        """Return the reason why a file cannot be written: a directory or symlink is in its way.

        A directory that holds only empty directories is removed.  `None` when the file can be written.
        """
        full = os.path.join(self.top, path)
        parent = os.path.dirname(path)
        while parent and not os.path.lexists(os.path.join(self.top, parent)):
            parent = os.path.dirname(parent)
        if parent and not real_parents(self.top, f"{parent}/x", known):
            return f"{parent} is in the way, which is not a directory and not in the checkpoint"
        if os.path.isdir(full) and not os.path.islink(full):
            try:
                _remove_empty(full)
            except OSError:
                return "a directory is in the way, with files that are not in the checkpoint"
        return None

    def _give_back_rights(self, path: str, mode: int) -> None:
        """Give a rewritten file its permissions back; git keeps only whether a file can be executed."""
        full = os.path.join(self.top, path)
        with suppress(OSError):
            now = os.lstat(full).st_mode
            rights = mode & 0o666
            if now & 0o100:
                rights |= (rights & 0o444) >> 2
            if stat.S_ISREG(now) and stat.S_IMODE(now) != rights:
                os.chmod(full, rights)


def _is_file(full: str) -> bool:
    return os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full))


def _remove_empty(directory: str) -> None:
    """Remove a directory that holds only empty directories; raises `OSError` when it holds a file, which stays."""
    for where, _, _ in os.walk(directory, topdown=False):
        os.rmdir(where)
