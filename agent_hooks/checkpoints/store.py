"""Store checkpoints in git: each is a commit without parents, with a ref `refs/agent-hooks/<session>/<name>`.

The name is the entry index, or `undo-N` for the files before a restore.  The commit's message has a line for a person and
a line of JSON for this module.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any
from urllib.parse import quote, unquote

from msgspec import Struct

from agent_hooks.checkpoints.git import CheckpointError, Worktree, open_worktree
from agent_hooks.checkpoints.marks import read_marks, remove_marks
from agent_hooks.checkpoints.snapshot import Skipped, Snapshot, ignored_paths, rules, take
from agent_hooks.turn_notes import open_turns

MAX_FILE_SIZE = 50 * 2**20
"""The most bytes of an untracked file that is saved, by default."""
_REFS = "refs/agent-hooks/"
_UNDO = "undo-"
_FORMAT = "%(refname) %(objectname) %(tree) %(contents:body)"


class Checkpoint(Struct, frozen=True):
    """The files of a working tree at one moment.

    `name`: the entry index as text, or `undo-N` for the files before a restore; `entry_index`: the number of session
    entries at that moment, `None` for an undo; `created`: Unix seconds; `top`: the working tree's directory; `skipped`:
    the paths that were not saved, with reasons; `commit`, `tree`: the git objects; `turn`: the turn before which it was
    made, empty for one that a hook or a restore made.
    """

    session_id: str
    name: str
    commit: str
    tree: str
    top: str
    created: float
    skipped: tuple[Skipped, ...] = ()
    turn: str = ""

    @property
    def entry_index(self) -> int | None:
        """The number of session entries when it was made; `None` for the files before a restore."""
        return int(self.name) if self.name.isdecimal() else None

    @property
    def ref(self) -> str:
        """The git ref that keeps it."""
        return ref_of(self.session_id, self.name)


async def create(
    cwd: str | PathLike[str],
    session_id: str,
    entry_index: int,
    *,
    max_file_size: int = MAX_FILE_SIZE,
    leave: Collection[str] = (),
) -> Checkpoint:
    """Save the tracked and untracked files of the working tree that contains `cwd`, byte by byte.

    Not saved are ignored files, untracked files and a nested `.git` larger than `max_file_size` bytes, empty
    directories, and the paths in `leave` (relative ones begin at `cwd`).  `skipped` of the checkpoint has the paths and
    reasons.  Index, stash, HEAD and branches stay unchanged.  An earlier checkpoint of that session and entry index is
    replaced.  Raises `CheckpointError` when git or a working tree is missing, or the checkpoint cannot be written.
    """
    if not isinstance(session_id, str) or not session_id or not isinstance(entry_index, int) or entry_index < 0:
        raise CheckpointError(
            f"checkpoints.create needs a session id and an entry index, not {session_id, entry_index}"
        )
    worktree = await open_worktree(cwd)
    async with worktree.locked():
        chosen = rules(worktree, cwd, max_file_size, leave)
        # A turn that continues may have made files ignored that its undo has to bring back.
        snapshot = await take(worktree, chosen, keep_hidden=bool(open_turns(worktree.store)))
        return await keep(worktree, session_id, str(entry_index), snapshot)


async def list_checkpoints(cwd: str | PathLike[str], session_id: str | None = None) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of a session, or of all sessions, the oldest first.

    Raises `CheckpointError` without a repository.
    """
    return await kept(await open_worktree(cwd), session_id)


async def ignored(cwd: str | PathLike[str]) -> tuple[str, ...]:
    """Return the paths that git ignores at present, which no checkpoint holds; a directory ends with `/`.

    Raises `CheckpointError` without a repository.
    """
    return await ignored_paths(await open_worktree(cwd))


def find_for_branch(checkpoints: Iterable[Checkpoint], target_entry_index: int) -> Checkpoint | None:
    """Return the checkpoint of the files before the prompt at that entry: the first one after it, or `None`.

    `target_entry_index` is `event.target_turn_index` of `before_branch`; `checkpoints` are those of one session.
    """
    past = [each for each in checkpoints if each.entry_index is not None and each.entry_index > target_entry_index]
    return min(past, key=lambda each: each.entry_index or 0, default=None)


async def inherit(cwd: str | PathLike[str], session_id: str, new_session_id: str, *, up_to: int) -> None:
    """Give a new session the checkpoints of the session that it was branched from, up to that entry index.

    Both sessions have the same entries until there, so the person can branch back further in the new one.
    Raises `CheckpointError`.
    """
    worktree = await open_worktree(cwd)
    if not worktree.has_store:
        return
    shared = [
        each for each in await kept(worktree, session_id) if each.entry_index is not None and each.entry_index <= up_to
    ]
    lines = [f"update {ref_of(new_session_id, each.name)} {each.commit}\n" for each in shared if not each.turn]
    if lines:
        (await worktree.git("update-ref", "--stdin", stdin="".join(lines).encode())).need()
    for each in shared:
        if each.turn:
            await keep(worktree, new_session_id, each.name, Snapshot(each.tree, each.skipped), created=each.created)


async def prune(
    cwd: str | PathLike[str],
    session_id: str | None = None,
    *,
    older_than: float | None = None,
    keep_last: int = 0,
) -> tuple[Checkpoint, ...]:
    """Delete checkpoints, undos too, of a session or of all sessions, and return them.

    `older_than`: delete only those made more than so many seconds ago; `keep_last`: keep so many of the newest of each
    session.  git frees the space when it next cleans up.  Raises `CheckpointError` without a repository.
    """
    worktree = await open_worktree(cwd)
    limit = time.time() - (older_than or 0)
    sessions: dict[str, list[Checkpoint]] = {}
    for each in await kept(worktree, session_id):
        sessions.setdefault(each.session_id, []).append(each)
    gone = tuple(
        each
        for group in sessions.values()
        for each in group[: len(group) - keep_last if keep_last else None]
        if older_than is None or each.created < limit
    )
    await forget(worktree, gone)
    return gone


async def forget(worktree: Worktree, checkpoints: Collection[Checkpoint]) -> None:
    """Delete checkpoints, those of turns with all marks of the turn."""
    turns = {each.turn for each in checkpoints if each.turn}
    remove_marks(worktree, [mark for mark in read_marks(worktree) if mark.work.turn in turns])
    lines = "".join(f"delete {each.ref} {each.commit}\n" for each in checkpoints if not each.turn)
    if lines:
        (await worktree.git("update-ref", "--stdin", stdin=lines.encode())).need()


# ---- for restore


async def keep(
    worktree: Worktree, session_id: str, name: str, snapshot: Snapshot, *, created: float | None = None
) -> Checkpoint:
    """Make a tree a checkpoint: commit it, and write its ref."""
    created = time.time() if created is None else created
    facts = {"top": worktree.top, "created": created, "skipped": [(s.path, s.reason) for s in snapshot.skipped]}
    message = f"agent_hooks checkpoint {name} of session {session_id!a}\n\n{json.dumps(facts)}\n"
    commit = (await worktree.git("commit-tree", snapshot.tree, stdin=message.encode())).need().decode().strip()
    (await worktree.git("update-ref", ref_of(session_id, name), commit)).need()
    await worktree.flush(ref_of(session_id, name))
    return Checkpoint(session_id, name, commit, snapshot.tree, worktree.top, created, snapshot.skipped)


async def keep_for_undo(worktree: Worktree, session_id: str, snapshot: Snapshot) -> Checkpoint:
    """Make the tree of the files before a restore a checkpoint, with the next free number."""
    numbers = [int(each.name.removeprefix(_UNDO)) for each in await kept(worktree, session_id) if is_undo(each)]
    return await keep(worktree, session_id, f"{_UNDO}{max(numbers, default=0) + 1}", snapshot)


async def kept(worktree: Worktree, session_id: str | None = None) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of a session, or of all sessions, the oldest first."""
    if not worktree.has_store:
        return ()
    pattern = _REFS if session_id is None else ref_of(session_id, "")
    lines = (await worktree.git("for-each-ref", f"--format={_FORMAT}", pattern)).need().decode().splitlines()
    found = list(_of_turns(worktree, session_id))
    # A hook may have saved the same turn; its checkpoint says less.
    known = {(each.session_id, each.name) for each in found}
    made = [checkpoint for line in lines if (checkpoint := _read(line)) is not None]
    found += [each for each in made if (each.session_id, each.name) not in known]
    return tuple(sorted(found, key=lambda each: each.created))


def _of_turns(worktree: Worktree, session_id: str | None) -> Iterator[Checkpoint]:
    """Yield the checkpoints that were made before the first change of a turn."""
    for mark in read_marks(worktree):
        work = mark.work
        if mark.kind == "begin" and session_id in (None, work.session_id):
            name = str(work.entry_index)
            yield Checkpoint(
                work.session_id, name, mark.tree, mark.tree, worktree.top, mark.created, mark.skipped, work.turn
            )


def is_undo(checkpoint: Checkpoint) -> bool:
    """Tell whether a restore made this checkpoint."""
    return checkpoint.entry_index is None


def ref_of(session_id: str, name: str) -> str:
    """Return the ref of a checkpoint; a session id may be any text."""
    return f"{_REFS}{quote(session_id, safe='').replace('.', '%2E').replace('~', '%7E')}/{name}"


def _read(line: str) -> Checkpoint | None:
    """Return the checkpoint in a line of git's output; `None` for any other ref."""
    ref, commit, tree, body = [*line.split(" ", 3), "", "", ""][:4]
    match = re.fullmatch(rf"{_REFS}([^/]+)/(\d+|{_UNDO}\d+)", ref)
    try:
        facts: dict[str, Any] = json.loads(body)
        skipped: Sequence[Any] = facts["skipped"]
        if match is None:
            return None
        return Checkpoint(
            unquote(match[1]),
            match[2],
            commit,
            tree,
            facts["top"],
            facts["created"],
            tuple(Skipped(path, reason) for path, reason in skipped),
        )
    except (ValueError, TypeError, KeyError):
        return None
