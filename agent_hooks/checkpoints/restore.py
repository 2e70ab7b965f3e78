"""Restore the working tree from a checkpoint, after the present files were saved.

There are two trees, of the present files and of the checkpoint.  A path that differs is written, a path that only the
present tree has is deleted, and any other path stays: files that git ignores, and files that the checkpoint lacks.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from typing import NamedTuple

from msgspec import Struct

from agent_hooks.checkpoints.contents import Contents
from agent_hooks.checkpoints.differences import Difference, differences, patch
from agent_hooks.checkpoints.git import CheckpointError, Worktree, listed, names_in, open_worktree, real_parents
from agent_hooks.checkpoints.placing import SAVED, Leaf, Place, hash_of_blob, original_of, place_of
from agent_hooks.checkpoints.refused import git_directory
from agent_hooks.checkpoints.rights import Rights, read_rights
from agent_hooks.checkpoints.snapshot import Rules, Skipped, Snapshot, printable, rules, save, take
from agent_hooks.checkpoints.store import MAX_FILE_SIZE, Checkpoint, is_undo, keep_for_undo, kept
from agent_hooks.errors import count, os_reason
from agent_hooks.storage.birth import born

# Seconds by which the clock of a file system may be behind that of the machine.
_COARSE = 0.05


class Kept(Struct, frozen=True):
    """A file that was saved during the restore; `kept_as` is the path to which it was renamed."""

    path: str
    kept_as: str

    def __str__(self) -> str:
        """Return the two paths, for a person."""
        return f"{printable(self.path)} was saved during the restore; that file is now {printable(self.kept_as)}"


class Restored(Struct, frozen=True):
    """The result of a restore.

    `written`, `deleted`: the changed files; `left`: the paths that a restore does not touch, each with the reason;
    `failed`: the paths that could not be written or deleted, each with the reason; `kept`: the files that were saved
    during the restore, which lie beside now; `undo`: the checkpoint of the files before the restore.
    """

    checkpoint: Checkpoint
    undo: Checkpoint
    written: tuple[str, ...]
    deleted: tuple[str, ...]
    left: tuple[Skipped, ...]
    failed: tuple[Skipped, ...] = ()
    kept: tuple[Kept, ...] = ()


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
    HEAD and branches.  `left` of the result has these paths, `failed` those that could not be restored, and `kept` the
    files that were saved in the meantime, which get another name.
    Raises `CheckpointError` when there is no working tree, the checkpoint belongs to another one, or the present files
    cannot be saved; no file is changed then.  When git fails later, the text of the `CheckpointError` says that the
    restore stopped in the middle, and how many files it had written and deleted.
    """
    worktree = await open_worktree(cwd)
    if checkpoint.top != worktree.top:
        there = "" if os.path.isdir(checkpoint.top) else ", after you have moved the working tree back"
        text = f"this checkpoint is one of {checkpoint.top}, not of {worktree.top}: restore it there{there}"
        raise CheckpointError(text)
    async with worktree.locked():
        if (await worktree.git("cat-file", "-e", f"{checkpoint.tree}^{{tree}}")).code:
            raise CheckpointError(f"checkpoint {checkpoint.name} is gone: it was pruned, and git has cleaned up")
        work = Restoring(worktree, checkpoint, rules(worktree, cwd, max_file_size, leave), os.path.realpath(cwd))
        now = await work.save_now()
        before = await keep_for_undo(worktree, checkpoint.session_id, now)
        try:
            await work.apply(now.tree)
        except CheckpointError as exc:
            done = f"{count(len(work.written), 'file')} written, {count(len(work.deleted), 'file')} deleted"
            kept = "".join(f"; {each}" for each in work.kept)
            text = f"the restore stopped in the middle ({done}{kept}), and undo takes it back: {exc}"
            raise CheckpointError(text) from None
    return Restored(
        checkpoint,
        before,
        tuple(sorted(work.written)),
        tuple(sorted(work.deleted)),
        tuple(Skipped(path, reason) for path, reason in sorted(work.left.items())),
        tuple(Skipped(path, reason) for path, reason in sorted(work.failed.items())),
        tuple(work.kept),
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
        [found] = await differences(worktree, [(checkpoint.tree, now.tree)])
        changes = tuple(Change(each.kind, each.path) for each in found)
        return Diff(changes, await patch(worktree, checkpoint.tree, now.tree))


async def _changes(worktree: Worktree, now: str, checkpoint: str) -> list[Difference]:
    """Return the changes that lead from the present files to a checkpoint."""
    [found] = await differences(worktree, [(checkpoint, now)])
    return [Difference(path, present, former) for path, former, present in found]


class Restoring:
    """One restore in progress."""

    def __init__(self, worktree: Worktree, checkpoint: Checkpoint, rules: Rules, cwd: str) -> None:
        self.worktree = worktree
        self.top = worktree.top
        self.checkpoint = checkpoint
        self.rules = rules
        self.cwd = cwd
        # Of the name to which a file is renamed that is no version of the snapshot.
        self.suffix = SAVED
        self.written: set[str] = set()
        self.deleted: set[str] = set()
        # For each path that is not restored, the reason.
        self.left: dict[str, str] = {}
        # For each path that could not be written or deleted, the reason.
        self.failed: dict[str, str] = {}
        self.kept: list[Kept] = []
        # The moments at which paths were saved, in Unix seconds, unless it was that of the checkpoint.
        self.moments: dict[str, float] = {}
        self._rights: Rights | None = None
        # The git repositories inside that stay as they are.
        self.nested: tuple[str, ...] = ()

    async def save_now(self) -> Snapshot:
        """Save the present files, and also ignored and large files that the restore would write over."""
        now = await take(self.worktree, self.rules)
        known: dict[str, bool] = {}
        changes = await _changes(self.worktree, now.tree, self.checkpoint.tree)
        made = {unit for change in changes if change.is_deleted and (unit := git_directory(change.path))}
        self.nested = tuple(unit.removesuffix(".git") for unit in made)
        self.left |= dict.fromkeys(self.nested, "is a git repository of its own, which a restore does not delete")
        unsaved = [
            change.path
            for change in changes
            if change.is_made
            and real_parents(self.top, change.path, known)
            and is_file(os.path.join(self.top, change.path))
            and not self.rules.leaves(change.path)
        ]
        for each in await save(self.worktree, unsaved):
            self.left[each.path] = f"the present file {each.reason}"
        tree = (await self.worktree.git("write-tree")).need().decode().strip()
        saved = set(unsaved) - self.left.keys()
        return Snapshot(tree, tuple(each for each in now.skipped if each.path not in saved))

    async def apply(self, now: str) -> None:
        """Write and delete the files that differ from the checkpoint."""
        found = await _changes(self.worktree, now, self.checkpoint.tree)
        changes = [change for change in found if not (change.is_deleted and change.path.startswith(self.nested))]
        # This refuses a tree with names that lead out of the working tree, or into `.git`.
        (await self.worktree.git("read-tree", "-m", "-i", now, self.checkpoint.tree)).need()
        await self.make(changes)

    async def make(self, changes: Sequence[Difference]) -> None:
        """Write and delete files."""
        # The .gitignore files come first: a file that they ignore again was ignored when the checkpoint was made.
        known: dict[str, bool] = {}
        early = {
            change.path
            for change in changes
            if os.path.basename(change.path) == ".gitignore"
            and (change.is_deleted or not self._in_the_way(change.path, known))
        }
        for first in (True, False):
            some = [change for change in changes if (change.path in early) is first]
            await self._delete([change for change in some if change.is_deleted], {each.path: each for each in changes})
            await self._write([change for change in some if not change.is_deleted])
        units = {unit for path in self.written if (unit := git_directory(path))}
        for unit in units:
            # git takes no directory without these for a repository, and they may be empty.
            for name in ("objects", "refs"):
                with suppress(OSError):
                    os.mkdir(os.path.join(self.top, unit, name))
        # The next snapshot need not read the restored files again.  It also has the files that git no longer lists,
        # because they are ignored now, or in a repository that a turn made.  A repository that is back is listed.
        back = tuple(unit.removesuffix(".git") for unit in units)
        await save(self.worktree, sorted(path for path in self.written if not path.startswith(back)))

    async def _delete(self, gone: list[Difference], changes: dict[str, Difference]) -> None:
        ignored = await self._ignored([each.path for each in gone])
        for path, now, _ in gone:
            if path in ignored:
                self.left[path] = "was ignored by git when the checkpoint was made"
            elif reason := self.keeps_out(path):
                self.left[path] = reason
            elif self._may_be_older(path):
                self.left[path] = "was there before, and ignore rules have changed"
            elif (original := original_of(path)) and not (original in changes and changes[original].new == now):
                self.left[path] = f"was kept by an earlier restore of {original}; delete it when you do not need it"
            else:
                self._delete_one(path, now)

    def _delete_one(self, path: str, now: Leaf) -> None:
        try:
            with place_of(self.top, path, self.worktree.object_format, suffix=self.suffix) as place:
                if place.remove(now):
                    self.deleted.add(path)
                self.kept += (Kept(path, each) for each in place.kept)
        except FileNotFoundError:
            return
        except OSError as exc:
            self.failed[path] = f"cannot be deleted: {os_reason(exc)}"
            return
        self._remove_empty_parents(path)

    def _may_be_older(self, path: str) -> bool:
        """Return whether a file may have been ignored by a rule of which no checkpoint knows."""
        moment = self.moments.get(path, self.checkpoint.created) - _COARSE
        for each in self.worktree.rule_files:
            with suppress(OSError):
                if os.stat(each).st_ctime >= moment:
                    return (made := born(os.path.join(self.top, path))) is not None and made < moment
        return False

    async def _ignored(self, paths: Iterable[str]) -> set[str]:
        if not paths:
            return set()
        # Without ./, git would take `:!x` for a pattern.
        asked = listed(f"./{path}" for path in paths)
        done = await self.worktree.git("check-ignore", "--no-index", "-z", "--stdin", stdin=asked)
        return {path[2:] for path in names_in(done.out if done.code == 1 else done.need())}

    def _remove_empty_parents(self, path: str) -> None:
        """Remove the directories above a deleted file that are empty now, and were made since."""
        parent = os.path.join(self.top, os.path.dirname(path))
        moment = self.moments.get(path, self.checkpoint.created) - _COARSE
        # The first directory that is not empty ends the loop.
        with suppress(OSError):
            while parent.rstrip("/") != self.top and not f"{self.cwd}/".startswith(f"{parent}/"):
                if (made := born(parent)) is not None and made < moment:
                    break
                os.rmdir(parent)
                parent = os.path.dirname(parent)

    async def _write(self, changes: list[Difference]) -> None:
        known: dict[str, bool] = {}
        wanted = []
        for change in changes:
            path = change.path
            if reason := self.keeps_out(path) or self._in_the_way(path, known):
                self.left.setdefault(path, reason)
            elif not (change.new.is_file or change.new.is_link):
                self.left[path] = "is neither a file nor a symlink in the checkpoint"
            elif path not in self.left:
                wanted.append(_Writing(self, change))
        while wanted:
            wanted = await self._write_some(wanted)

    async def _write_some(self, wanted: list[_Writing]) -> list[_Writing]:
        """Write files up to the first with which git fails, and return those after it."""
        asked = "".join(f"{each.change.new.digest}\n" for each in wanted).encode()
        try:
            done = await self.worktree.git(
                "cat-file", "--batch", stdin=asked, receive=Contents(iter(wanted)), limit=None
            )
        finally:
            for each in wanted:
                each.close()
        reason = done.err.strip() or f"git ended with code {done.code}"
        for number, each in enumerate(wanted, 1):
            if each.change.path not in self.written and each.change.path not in self.failed:
                self.failed[each.change.path] = f"cannot be written: {reason}"
                return wanted[number:]
        return []

    def former_rights(self, path: str) -> int | None:
        """Return the rights that a file had when it was saved, `None` if it was open to all readers."""
        if self._rights is None:
            self._rights = read_rights(self.worktree.store)
        # A version that is kept beside has the rights of its file.
        return self._rights.at(original_of(path) or path, self.moments.get(path, self.checkpoint.created))

    def keeps_out(self, path: str) -> str | None:
        """Return the reason why a path must not be touched, or `None`."""
        if self.rules.leaves(path):
            return "left alone"
        for each in self.checkpoint.skipped:
            if path == each.path or (each.path.endswith("/") and path.startswith(each.path)):
                return f"is not in the checkpoint: {each.reason}"
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


class _Writing:
    """One file that is written: the receiver of its content."""

    def __init__(self, restore: Restoring, change: Difference) -> None:
        self.change = change
        self._restore = restore
        self._open = ExitStack()
        self._place: Place | None = None
        self._file = -1
        self._draft = ""

    def begin(self, size: int) -> None:
        """Make a draft."""
        self._hash = hash_of_blob(self._restore.worktree.object_format, size)
        with self._failing():
            restore, path = self._restore, self.change.path
            place = place_of(restore.top, path, restore.worktree.object_format, make=True, suffix=restore.suffix)
            self._place = self._open.enter_context(place)
            executable = self.change.new.mode == "100755"
            self._file, self._draft = self._place.draft(executable=executable, former=restore.former_rights(path))
            self._open.callback(self._place.drop, self._draft)
            self._open.callback(os.close, self._file)

    def take(self, chunk: bytes) -> None:
        """Write the next bytes to the draft."""
        self._hash.update(chunk)
        with self._failing():
            while chunk and self._place is not None:
                chunk = chunk[os.write(self._file, chunk) :]

    def end(self) -> None:
        """Give the draft its name, if it has the bytes that were saved."""
        if self._hash.hexdigest() != self.change.new.digest:
            self.fail("the store is damaged: it has other bytes than were saved")
            return
        with self._failing():
            if (place := self._place) is not None:
                try:
                    place.put(self._draft, self.change.now, link=self.change.new.is_link)
                    self._restore.written.add(self.change.path)
                finally:
                    self._restore.kept += (Kept(self.change.path, each) for each in place.kept)
        self.close()

    def fail(self, reason: str) -> None:
        """Note the reason, and remove the draft."""
        self._restore.failed[self.change.path] = f"cannot be written: {reason}"
        self.close()

    def close(self) -> None:
        """Remove the draft, if there is one, and close the directory."""
        self._place = None
        self._open.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            self.fail(os_reason(exc))


def is_file(full: str) -> bool:
    """Tell whether a path is there and no directory, a link to one included."""
    return os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full))


def _remove_empty(directory: str) -> None:
    """Remove a directory that holds only empty directories; raises `OSError` when it holds a file, which stays."""
    for where, _, _ in os.walk(directory, topdown=False):
        os.rmdir(where)
