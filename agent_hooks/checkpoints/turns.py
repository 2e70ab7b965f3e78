"""The turns that changed files in a working tree, of all sessions and agents, and what each of them changed.

An interval lies between two marks.  It belongs to the one turn that goes on in it, or, where several go on, to the one
with a call that runs.  The changes of an interval without a turn are the person's.  Those of an interval in which calls
of several turns run belong to none of them, because each of the turns may have made them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from typing import NamedTuple

from msgspec import Struct

from agent_hooks.checkpoints.differences import differences, patch
from agent_hooks.checkpoints.git import CheckpointError, Worktree, open_worktree
from agent_hooks.checkpoints.marks import Mark, marks_since, read_marks
from agent_hooks.checkpoints.placing import ABSENT, Leaf
from agent_hooks.checkpoints.refused import stored_name
from agent_hooks.checkpoints.snapshot import Skipped, Snapshot, take
from agent_hooks.checkpoints.snapshot import rules as rules_of
from agent_hooks.checkpoints.store import MAX_FILE_SIZE
from agent_hooks.turn_notes import Work, open_turns


class Edit(NamedTuple):
    """A change of one path in one interval: its leaves before and after, and the turns that may have made it.

    `at`: the place of the interval among the marks; `since`: when it began, in Unix seconds.
    """

    path: str
    old: Leaf
    new: Leaf
    owners: frozenset[str]
    at: int
    since: float


class Turn(Struct, frozen=True, kw_only=True):
    """A turn that changed files, or an undo.

    `number`: how many turns `undo` has to take back to reach this one, from 1; `None` for one that is taken back, and
    for an undo; `created`: when it began, in Unix seconds; `begin`: the mark of the files before it; `paths`: the files
    that it changed; `end`: the tree after it, `None` while it goes on; `unsaved`: the paths that were not saved at its
    end, unlike at its beginning.
    """

    number: int | None
    work: Work
    created: float
    begin: Mark
    end: str | None
    paths: tuple[str, ...]
    is_undo: bool = False
    unsaved: tuple[Skipped, ...] = ()

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The paths that were not saved at its beginning."""
        return self.begin.skipped


class History(Struct, frozen=True):
    """What happened in a working tree: its turns, the newest first, and the edits, the oldest first.

    `undone`: the turns that are taken back, each with the interval from which on its edits count again; `damaged`: the
    number of marks whose files cannot be read.
    """

    turns: tuple[Turn, ...]
    edits: tuple[Edit, ...]
    now: str
    undone: Mapping[str, int] = {}
    damaged: int = 0

    def takers(self, edit: Edit) -> frozenset[str]:
        """Return those owners of an edit that were taken back after it."""
        return frozenset(turn for turn in edit.owners if self.undone.get(turn, -1) > edit.at)

    def countable(self) -> tuple[Turn, ...]:
        """Return the turns that `undo` counts, the newest first."""
        return tuple(turn for turn in self.turns if turn.number is not None)


async def read_history(worktree: Worktree, now: str, trees: Collection[str] | None = None) -> History:
    """Return the history of a working tree whose present files are the tree `now`.  Raises `CheckpointError`.

    `trees`: those that can be read, `None` for all.
    """
    marks = read_marks(worktree)
    readable = None if trees is None else [mark.tree in trees for mark in marks]
    edits = await _edits(worktree, marks, now, trees)
    undone = _undone(marks)
    turns: list[Turn] = []
    ends = {mark.work.turn: mark for mark in marks if mark.kind in ("end", "undo")}
    changed: dict[str, dict[str, None]] = {}
    # The turns that were taken back, and have changed nothing since.
    gone = set(undone)
    for edit in edits:
        gone -= {turn for turn in edit.owners if undone.get(turn, -1) <= edit.at}
    for edit in edits:
        for turn in edit.owners:
            if turn in gone or undone.get(turn, -1) <= edit.at:
                changed.setdefault(turn, {})[edit.path] = None
    number = 0
    begun = {mark.work.turn: mark for mark in reversed(marks) if mark.kind in ("begin", "before-undo")}
    for mark in sorted(begun.values(), key=lambda each: each.name, reverse=True):
        turn = mark.work.turn
        if turn not in changed:
            continue
        is_undo = mark.kind == "before-undo"
        counts = not is_undo and turn not in gone
        number += counts
        end = ends.get(turn)
        turns.append(
            Turn(
                number=number if counts else None,
                work=mark.work,
                created=mark.created,
                begin=mark,
                end=None if end is None else end.tree,
                paths=tuple(sorted(changed[turn])),
                is_undo=is_undo,
                unsaved=() if end is None else tuple(each for each in end.skipped if each not in mark.skipped),
            )
        )
    return History(tuple(turns), tuple(edits), now, undone, 0 if readable is None else readable.count(False))


async def turns(cwd: str | PathLike[str]) -> tuple[Turn, ...]:
    """Return the turns that changed files in the working tree of `cwd`, the newest first.

    Turns that were taken back, and undos, have no number.  Raises `CheckpointError` without a working tree.
    """
    worktree = await open_worktree(cwd)
    if not worktree.has_store:
        return ()
    return (await read_now(worktree, cwd)).turns


async def files_of(worktree: Worktree, turn: str) -> tuple[str, ...]:
    """Return the files that a turn has changed up to the last mark, relative to the working tree.

    Raises `CheckpointError`, also where the mark of its beginning is gone.
    """
    marks = marks_since(worktree, turn)
    if not marks:
        raise CheckpointError(f"the checkpoint before turn {turn} is gone")
    begun = {mark.work.turn for mark in marks if mark.kind in ("begin", "before-undo")}
    # The turns that went on before this one began.
    earlier = {each: Work(turn=each) for each in open_turns(worktree.store) if each not in begun}
    earlier |= {mark.work.turn: mark.work for mark in marks if mark.work.turn not in begun}
    edits = await _edits(worktree, marks, marks[-1].tree, None, earlier)
    return tuple(sorted({edit.path for edit in edits if turn in edit.owners}))


async def read_now(worktree: Worktree, cwd: str | PathLike[str]) -> History:
    """Save the present files, and return the history up to them."""
    async with worktree.locked():
        return (await take_and_read(worktree, cwd))[1]


async def take_and_read(worktree: Worktree, cwd: str | PathLike[str]) -> tuple[Snapshot, History]:
    """Save the present files, and return them with the history; the caller holds the lock.  Raises `CheckpointError`.

    A damaged store is mended; the turns whose files it has lost are left out.
    """
    rules = rules_of(worktree, cwd, MAX_FILE_SIZE, ())
    snapshot = await take(worktree, rules)
    try:
        return snapshot, await read_history(worktree, snapshot.tree)
    except CheckpointError:
        # Imported here, because few stores are damaged.
        from agent_hooks.checkpoints.mending import mend, readable_trees

        await mend(worktree)
        snapshot = await take(worktree, rules)
        trees = await readable_trees(worktree, {snapshot.tree, *(mark.tree for mark in read_marks(worktree))})
        return snapshot, await read_history(worktree, snapshot.tree, trees)


async def turn_diff(cwd: str | PathLike[str], number: int) -> str:
    """Return the changes of a turn, counted from the newest, in the form of `git diff`.  Raises `CheckpointError`."""
    worktree = await open_worktree(cwd)
    history = await read_now(worktree, cwd)
    turn = next((each for each in history.turns if each.number == number), None)
    if turn is None:
        raise CheckpointError(no_such_turn(number, len(history.countable())))
    return await _diff_of(worktree, history, {turn.work.turn})


async def session_diff(cwd: str | PathLike[str], sessions: Collection[str]) -> str:
    """Return the changes that all turns of some sessions have made, in the form of `git diff`; empty without any.

    `sessions`: their ids.  Raises `CheckpointError`.
    """
    worktree = await open_worktree(cwd)
    history = await read_now(worktree, cwd)
    mine = {turn.work.turn for turn in history.countable() if turn.work.session_id in sessions}
    return await _diff_of(worktree, history, mine) if mine else ""


async def _diff_of(worktree: Worktree, history: History, turns: Collection[str]) -> str:
    """Return the edits of some turns that were not taken back, from the first to the last one of each path."""
    mine: dict[str, list[Edit]] = {}
    for edit in history.edits:
        if not (edit.owners - history.takers(edit)).isdisjoint(turns):
            mine.setdefault(edit.path, []).append(edit)
    one = await _tree_of(worktree, {path: edits[0].old for path, edits in mine.items()})
    other = await _tree_of(worktree, {path: edits[-1].new for path, edits in mine.items()})
    return await patch(worktree, one, other)


def no_such_turn(number: int, there: int) -> str:
    """Return the error text for a turn that is not there."""
    if not there:
        return "no turn of an agent has changed files here since checkpoints are made"
    return f"there is no turn {number}: the newest is 1, and the oldest {there}"


async def _tree_of(worktree: Worktree, leaves: Mapping[str, Leaf]) -> str:
    """Return a tree that holds these paths alone."""
    with tempfile.TemporaryDirectory() as directory:
        index = os.path.join(directory, "index")
        lines = b"".join(
            f"{leaf.mode} {leaf.digest}\t".encode() + os.fsencode(stored_name(path, link=leaf.is_link)) + b"\0"
            for path, leaf in leaves.items()
            if leaf != ABSENT
        )
        (await worktree.git("update-index", "-z", "--index-info", stdin=lines, index=index)).need()
        return (await worktree.git("write-tree", index=index)).need().decode().strip()


# ---- intervals -------------------------------------------------------------------------------------------------------


async def _edits(
    worktree: Worktree,
    marks: Sequence[Mark],
    now: str,
    readable: Collection[str] | None,
    earlier: Mapping[str, Work] = {},
) -> list[Edit]:
    """Return the changes of all intervals, the oldest first; one with a tree that cannot be read has none.

    `earlier`: the turns that went on before the first mark.
    """
    owners = _owners(worktree, marks, earlier)
    trees = [*(mark.tree for mark in marks), now]
    pairs = [
        (one, other, place)
        for place, (one, other) in enumerate(pairwise(trees))
        if one != other and (readable is None or {one, other} <= {*readable})
    ]
    found = await differences(worktree, [(one, other) for one, other, _ in pairs])
    return [
        Edit(path, old, new, owners[place], place, marks[place].created)
        for (_, _, place), each in zip(pairs, found, strict=True)
        for path, old, new in each
    ]


def _owners(worktree: Worktree, marks: Sequence[Mark], earlier: Mapping[str, Work]) -> list[frozenset[str]]:
    """Return the turns that may have made the changes after each mark."""
    live = open_turns(worktree.store)
    ends: dict[str, int] = {}
    for at, mark in enumerate(marks):
        if mark.kind in ("end", "undo"):
            ends[mark.work.turn] = at
    going = dict(earlier)
    owners = []
    for at, mark in enumerate(marks):
        work = mark.work
        if mark.kind in ("begin", "before-undo"):
            # A turn without an end was killed, unless it goes on at present.
            gone = [
                turn
                for turn, each in going.items()
                if turn not in ends and (turn not in live or each.session_id == work.session_id)
            ]
            for turn in gone:
                going.pop(turn)
            going[work.turn] = work
        for turn in [turn for turn in going if ends.get(turn, at + 1) <= at]:
            going.pop(turn)
        owners.append(_owner(mark, going))
    return owners


def _owner(mark: Mark, going: Collection[str]) -> frozenset[str]:
    if mark.kind == "before-undo":
        return frozenset({mark.work.turn})
    running = frozenset(mark.running) & frozenset(going)
    if running or len(going) > 1:
        # Several turns go on, and none of them has a call that runs: the change is the person's.
        return running
    return frozenset(going)


def _undone(marks: Sequence[Mark]) -> dict[str, int]:
    """Return the turns that are taken back, each with the interval from which on its edits count again.

    A turn may go on after that.  An undo that is taken back gives its turns the state that they had before it.
    """
    undone: dict[str, int] = {}
    # For each undo, the state that its turns had before.
    former: dict[str, dict[str, int | None]] = {}
    for at, mark in enumerate(marks):
        if mark.kind != "undo":
            continue
        state: dict[str, int | None] = {}
        for each in mark.undone:
            state |= former.get(each, {each: at})
        former[mark.work.turn] = {turn: undone.get(turn) for turn in state}
        for turn, place in state.items():
            if place is None:
                undone.pop(turn, None)
            else:
                undone[turn] = place
    return undone
