"""Marks: the states of a working tree at the moments that matter for undo, in the order of time.

A mark is a file of JSON in the directory `marks` of a store, and a ref `refs/marks/NAME` that keeps its tree.  There is a
mark at the beginning and at the end of each turn that changes files, and before and after each undo.  While several
turns go on in one working tree, there is one before and after each of their calls as well.  A mark names the turns with
a call that runs from there on, and so each interval between two marks has its owner (see `turns`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from agent_hooks.checkpoints.git import Worktree
from agent_hooks.checkpoints.json_text import decoded, encoded
from agent_hooks.checkpoints.snapshot import Skipped, Snapshot
from agent_hooks.storage.files import StorageError, read_regular, write_atomically
from agent_hooks.turn_notes import Work, open_turns

Kind = Literal["begin", "call", "end", "before-undo", "undo"]
_MARKS = "marks"
_REFS = ("refs", "marks")
# Seconds by which the clock of a mark may be ahead.
_SLACK = 1.0
# Bytes of a mark; it names each path that was not saved.
_LONGEST = 1 << 26


class Mark(Struct, frozen=True, kw_only=True):
    """One state of the working tree.

    `name`: orders the marks by time; `created`: Unix seconds; `tree`: the git tree; `running`: the turns with a call
    that runs from this mark on; `skipped`: the paths that were not saved, with reasons; `undone`: the turns, or the
    undo, that an undo takes back.
    """

    name: str
    kind: Kind
    work: Work
    created: float
    tree: str
    running: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    undone: tuple[str, ...] = ()


def write_mark(
    worktree: Worktree,
    kind: Kind,
    work: Work,
    snapshot: Snapshot,
    *,
    running: Iterable[str],
    undone: Iterable[str] = (),
) -> Mark:
    """Keep a snapshot as a mark, on the disk; the caller holds the lock.  Raises `CheckpointError`.

    `running`: the turns with a call that ran when the snapshot began.  Such a call may have ended since, and may have
    changed files that the snapshot had passed.
    """
    created = time.time()
    directory = os.path.join(worktree.store, _MARKS)
    last = max(_names(worktree), default="0")
    name = f"{max(int(created * 1_000_000), int(last) + 1):020}"
    mark = Mark(
        name=name,
        kind=kind,
        work=work,
        created=created,
        tree=snapshot.tree,
        running=tuple(sorted({*running, *running_turns(worktree)})),
        skipped=snapshot.skipped,
        undone=tuple(undone),
    )
    try:
        for each in (directory, os.path.join(worktree.store, *_REFS)):
            os.makedirs(each, mode=0o700, exist_ok=True)
        # The ref comes first: a mark without its tree would be worth nothing.
        write_atomically(os.path.join(worktree.store, *_REFS, name), f"{snapshot.tree}\n".encode(), secret=True)
        write_atomically(os.path.join(directory, name), encoded(mark), secret=True, durable=True)
    except (OSError, StorageError) as exc:
        raise worktree.failed(exc) from None
    return mark


def read_marks(worktree: Worktree) -> list[Mark]:
    """Return the marks of a working tree, the oldest first; one that is half written counts as none.

    Raises `CheckpointError` if the marks cannot be listed.
    """
    return [mark for name in _names(worktree) if (mark := mark_at(worktree.store, name)) is not None]


def mark_at(store: str, name: str) -> Mark | None:
    """Return the mark of a name; `None` if it is half written."""
    path = os.path.join(store, _MARKS, name)
    try:
        mark = decoded(read_regular(path, path, _LONGEST), Mark)
    except (OSError, StorageError, ValueError, RecursionError):
        return None
    return mark if mark.name == name and os.path.exists(_ref(store, name)) else None


def marks_since(worktree: Worktree, turn: str) -> list[Mark]:
    """Return the marks from the beginning of a turn on, the oldest first; empty if there is no such turn.

    Only these are read, because a store may have thousands.  Raises `CheckpointError` if the marks cannot be listed.
    """
    found = []
    for name in reversed(_names(worktree)):
        mark = mark_at(worktree.store, name)
        if mark is not None:
            found.append(mark)
            if mark.kind == "begin" and mark.work.turn == turn:
                return found[::-1]
    return []


def has_turn(store: str, turn: str, until: float) -> bool:
    """Tell whether a store has the files before a turn; `until`: a time after the turn, in Unix seconds.

    The oldest marks are removed first, so the look ends soon.  Raises `OSError` if the marks cannot be listed.
    """
    last = f"{int((until + _SLACK) * 1_000_000):020}"
    marks = (mark_at(store, name) for name in reversed(mark_names(store)) if name <= last)
    return any(mark is not None and mark.kind == "begin" and mark.work.turn == turn for mark in marks)


def remove_marks(worktree: Worktree, marks: Iterable[Mark]) -> None:
    """Forget marks; raises `CheckpointError`."""
    try:
        for mark in marks:
            for path in (os.path.join(worktree.store, _MARKS, mark.name), _ref(worktree.store, mark.name)):
                with suppress(FileNotFoundError):
                    os.unlink(path)
    except OSError as exc:
        raise worktree.failed(exc) from None


def _ref(store: str, name: str) -> str:
    return os.path.join(store, *_REFS, name)


def _names(worktree: Worktree) -> list[str]:
    try:
        return mark_names(worktree.store)
    except OSError as exc:
        raise worktree.failed(exc) from None


def mark_names(store: str) -> list[str]:
    """Return the names of the marks in a store, the oldest first; raises `OSError` if they cannot be listed."""
    try:
        names = os.listdir(os.path.join(store, _MARKS))
    except FileNotFoundError:
        return []
    return sorted(name for name in names if name.isdecimal() and name.isascii())


def running_turns(worktree: Worktree) -> tuple[str, ...]:
    """Return the turns with a call that runs now."""
    return tuple(sorted(turn for turn, calls in open_turns(worktree.store).items() if calls))
