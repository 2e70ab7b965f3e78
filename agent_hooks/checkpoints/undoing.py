"""Take back what some turns changed, and nothing else.

For each path that the turns changed, the file gets the content that it had before the first of them.  A version that is
neither that nor the one that the turns left is a later edit: of the person, or of another agent.  It stays beside, under
another name, and is named.  An undo is kept like a turn, so it can be taken back the same way.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Sequence
from itertools import pairwise
from os import PathLike

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.checkpoints.differences import Difference, leaves
from agent_hooks.checkpoints.git import CheckpointError, Worktree, open_worktree, real_parents
from agent_hooks.checkpoints.marks import running_turns, write_mark
from agent_hooks.checkpoints.placing import ABSENT, EDITED, Leaf, beside
from agent_hooks.checkpoints.refused import git_directory
from agent_hooks.checkpoints.restore import Kept, Restoring, is_file
from agent_hooks.checkpoints.snapshot import Skipped, Snapshot, ignored_paths, rules, save, take, write_tree
from agent_hooks.checkpoints.store import MAX_FILE_SIZE, Checkpoint
from agent_hooks.checkpoints.turns import Edit, History, Turn, no_such_turn, read_now, take_and_read
from agent_hooks.errors import count
from agent_hooks.turn_notes import Work, note_closed, note_open


class UndoPlan(Struct, frozen=True):
    """What an undo would do: the turns that it takes back, the newest first, and the files that would change.

    `left`: the paths that stay as they are, each with the reason; `edited`: the files with a later edit, which stays
    beside; `ignored`: the paths that git ignores at present, which no checkpoint holds; `damaged`: how many states of the
    working tree the store has lost.
    """

    turns: tuple[Turn, ...]
    paths: tuple[str, ...]
    edited: tuple[str, ...] = ()
    left: tuple[Skipped, ...] = ()
    ignored: tuple[str, ...] = ()
    damaged: int = 0


class Undone(Struct, frozen=True):
    """The result of an undo.

    `written`, `deleted`: the changed files; `kept`: the later edits, which lie beside now; `left`: the paths that stay
    as they are; `failed`: those that could not be written or deleted; each with the reason.
    """

    turns: tuple[Turn, ...]
    written: tuple[str, ...]
    deleted: tuple[str, ...]
    kept: tuple[Kept, ...] = ()
    left: tuple[Skipped, ...] = ()
    failed: tuple[Skipped, ...] = ()


async def plan_undo(cwd: str | PathLike[str], turns: int = 1, *, only: Collection[str] = ()) -> UndoPlan:
    """Return what taking back the last `turns` turns of all sessions and agents would do; nothing changes.

    `only`: the ids of turns, which alone are taken back.  Raises `CheckpointError` when there are not so many turns, no
    turn with such an id, or no working tree.
    """
    worktree = await open_worktree(cwd)
    if not worktree.has_store:
        raise CheckpointError(no_such_turn(turns, 0))
    history = await read_now(worktree, cwd)
    chosen = _those(history, only) if only else _last(history, turns)
    return await _plan(worktree, cwd, history, chosen)


async def plan_redo(cwd: str | PathLike[str]) -> UndoPlan | None:
    """Return what taking back the last undo would do, `None` if there was no undo; raises `CheckpointError`."""
    worktree = await open_worktree(cwd)
    if not worktree.has_store:
        return None
    history = await read_now(worktree, cwd)
    last = next((turn for turn in history.turns if turn.is_undo), None)
    return None if last is None else await _plan(worktree, cwd, history, (last,))


async def take_back(cwd: str | PathLike[str], plan: UndoPlan) -> Undone:
    """Take back the turns of a plan, as the files are now; returns the result.

    The present files are saved before.  Raises `CheckpointError` when that fails, and then no file has changed; when git
    fails later, the text says so.
    """
    worktree = await open_worktree(cwd)
    async with worktree.locked():
        running = running_turns(worktree)
        before, history = await take_and_read(worktree, cwd)
        work = _Undo(worktree, cwd, history, plan.turns)
        before = await work.save_hidden(before)
        label = Work(turn=f"undo-{secrets.token_hex(8)}", agent="undo", prompt=_title(plan.turns))
        note_open(worktree.store, label.turn, calls=1)
        try:
            write_mark(worktree, "before-undo", label, before, running=running)
            try:
                await work.restoring.make(await work.changes())
            except CheckpointError as exc:
                raise CheckpointError(f"the undo stopped in the middle; to take it back: {REDO}: {exc}") from None
            finally:
                running = running_turns(worktree)
                after = await take(worktree, rules(worktree, cwd, MAX_FILE_SIZE, ()))
                undone = [turn.work.turn for turn in plan.turns]
                write_mark(worktree, "undo", label, after, running=running, undone=undone)
        finally:
            note_closed(worktree.store, label.turn)
    return work.result()


REDO = "agent-hooks redo"
"""The command that takes an undo back."""
_BACK = "took back: "


def _last(history: History, turns: int) -> tuple[Turn, ...]:
    found = history.countable()
    if turns < 1 or turns > len(found):
        raise CheckpointError(no_such_turn(turns, len(found)))
    return found[:turns]


def _those(history: History, ids: Collection[str]) -> tuple[Turn, ...]:
    found = tuple(turn for turn in history.turns if turn.work.turn in ids and not turn.is_undo)
    if missing := sorted({*ids} - {turn.work.turn for turn in found}):
        raise CheckpointError(
            f"no turn {missing[0]} has changed files here; agent-hooks checkpoints list shows the turns"
        )
    if undone := [turn for turn in found if turn.number is None]:
        raise CheckpointError(f"turn {undone[0].work.turn} is taken back already; to take that back: {REDO}")
    return found


def _title(turns: Sequence[Turn]) -> str:
    if len(turns) == 1 and turns[0].is_undo:
        former = turns[0].work.prompt
        return former.removeprefix(_BACK) if former.startswith(_BACK) else f"{_BACK}{former}"
    return f"undo of {count(len(turns), 'turn')}"


async def _plan(worktree: Worktree, cwd: str | PathLike[str], history: History, turns: tuple[Turn, ...]) -> UndoPlan:
    work = _Undo(worktree, cwd, history, turns)
    await work.read_now()
    changes = await work.changes()
    wanted = [change for change in changes if not work.restoring.keeps_out(change.path)]
    return UndoPlan(
        turns,
        tuple(sorted(change.path for change in wanted if change.path not in work.beside)),
        tuple(sorted(work.edited)),
        work.left(),
        await ignored_paths(worktree),
        history.damaged,
    )


class _Undo:
    """One undo: the changes that it makes, from the edits of its turns."""

    def __init__(self, worktree: Worktree, cwd: str | PathLike[str], history: History, turns: tuple[Turn, ...]) -> None:
        self._worktree = worktree
        self._turns = turns
        self._ids = frozenset(turn.work.turn for turn in turns)
        self._history = history
        # An undo changes no file without saving it before, so nothing of an undo is out of reach.
        before = [each for turn in turns if not turn.is_undo for each in turn.skipped]
        skipped = tuple({each.path: each for each in before}.values())
        checkpoint = Checkpoint("", "undo", "", history.now, worktree.top, 0.0, skipped)
        chosen = rules(worktree, cwd, MAX_FILE_SIZE, ())
        self.restoring = Restoring(worktree, checkpoint, chosen, os.path.realpath(cwd))
        self.restoring.suffix = EDITED
        # The edits of the turns, by path.
        self._mine: dict[str, list[Edit]] = {}
        # The paths that one of the turns may have changed, while another one went on too.
        self._shared: set[str] = set()
        for edit in history.edits:
            taken = history.takers(edit)
            if not (edit.owners - taken) & self._ids:
                continue
            if edit.owners <= self._ids | taken:
                self._mine.setdefault(edit.path, []).append(edit)
            else:
                self._shared.add(edit.path)
        # The repositories inside that the turns have made, and their files, stay.
        made = (git_directory(path) for path, edits in self._mine.items() if edits[0].old == ABSENT)
        self._made = tuple(unit.removesuffix(".git") for unit in made if unit)
        self._mine = {
            path: edits
            for path, edits in self._mine.items()
            if edits[0].old != ABSENT or not path.startswith(self._made)
        }
        self._now: dict[str, Leaf] = {}
        # The paths of versions that are written beside.
        self.beside: set[str] = set()
        self.edited: set[str] = set()
        self._gone: dict[str, str] = {}
        self._intermediate: list[Kept] = []

    async def read_now(self) -> None:
        """Read the present leaves of the paths."""
        found = await leaves(self._worktree, self._history.now)
        self._now = {path: leaf for path, leaf in found.items() if path in self._mine}

    async def save_hidden(self, before: Snapshot) -> Snapshot:
        """Save the files that the undo would write over and that the snapshot lacks, ignored ones for example."""
        await self.read_now()
        top = self._worktree.top
        known: dict[str, bool] = {}
        hidden = [
            path
            for path in self._mine
            if path not in self._now
            and real_parents(top, path, known)
            and is_file(os.path.join(top, path))
            and not self.restoring.keeps_out(path)
        ]
        if not hidden:
            return before
        for each in await save(self._worktree, hidden):
            self.restoring.left[each.path] = f"the present file {each.reason}"
        tree = await write_tree(self._worktree)
        self._history = replace(self._history, now=tree)
        await self.read_now()
        return Snapshot(tree, before.skipped)

    async def changes(self) -> list[Difference]:
        """Return the changes of files that take the turns back."""
        found: list[Difference] = []
        for path, edits in sorted(self._mine.items()):
            target, left = edits[0].old, edits[-1].new
            self.restoring.moments[path] = edits[0].since
            now = self._now.get(path, ABSENT)
            unit = git_directory(path)
            is_own = path == unit and now != ABSENT
            if unit and not is_own and now != target and os.path.lexists(os.path.join(self._worktree.top, unit)):
                self._gone[unit.removesuffix(".git")] = "is another git repository now"
                continue
            # A version between two turns, which the later one wrote over.
            for one, two in pairwise(edits):
                if unit is None and two.old not in (one.new, ABSENT, target, now):
                    aside = beside(path, EDITED)
                    self.beside.add(aside)
                    self.restoring.moments[aside] = two.since
                    self._intermediate.append(Kept(path, aside))
                    self.edited.add(path)
                    found.append(Difference(aside, ABSENT, two.old))
            if now == target:
                continue
            if now == ABSENT and left != ABSENT:
                self._gone[path] = "was deleted since"
                continue
            if now not in (left, ABSENT):
                self.edited.add(path)
            found.append(Difference(path, left if now != ABSENT else ABSENT, target))
        return found

    def left(self) -> tuple[Skipped, ...]:
        """Return the paths that stay as they are, with the reasons."""
        shared = "was changed while calls of several agents ran; it comes back with the turns of all of them"
        reasons = {**dict.fromkeys(self._shared, shared), **self._gone, **self.restoring.left}
        for path in self._mine:
            if reason := self.restoring.keeps_out(path):
                reasons.setdefault(path, reason)
        for path in self._made:
            if os.path.lexists(os.path.join(self._worktree.top, path, ".git")):
                reasons.setdefault(path, "is a git repository of its own, which undo does not delete")
        for gone in (each for turn in self._turns for each in turn.skipped):
            if gone.path.endswith("/") and not os.path.lexists(os.path.join(self._worktree.top, gone.path)):
                reasons.setdefault(gone.path, f"is gone, and was not saved: {gone.reason}")
        for unsaved in (each for turn in self._turns for each in turn.unsaved):
            if unsaved.reason != "left alone" and unsaved.path not in self._mine:
                reasons.setdefault(unsaved.path, unsaved.reason)
        return tuple(Skipped(path, reason) for path, reason in sorted(reasons.items()))

    def result(self) -> Undone:
        """Return the result, after the changes were made."""
        restoring = self.restoring
        return Undone(
            self._turns,
            tuple(sorted(restoring.written - self.beside)),
            tuple(sorted(restoring.deleted)),
            (*restoring.kept, *(each for each in self._intermediate if each.kept_as in restoring.written)),
            self.left(),
            tuple(Skipped(path, reason) for path, reason in sorted(restoring.failed.items())),
        )
