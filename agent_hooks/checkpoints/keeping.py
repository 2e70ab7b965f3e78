"""Save the working tree around the turns of agents: before the first call that changes files, and at the turn's end.

`pipeline.saving` decides when; a process of one event without such a call never loads this module.
"""

from __future__ import annotations

import anyio

from agent_hooks.checkpoints.git import CheckpointError, GitTimeoutError, Worktree, open_worktree
from agent_hooks.checkpoints.marks import Kind, Mark, running_turns, write_mark
from agent_hooks.checkpoints.pruning import FINISH, prune_when_due, start_removal
from agent_hooks.checkpoints.snapshot import printable, rules, take
from agent_hooks.checkpoints.store import MAX_FILE_SIZE
from agent_hooks.errors import log
from agent_hooks.turn_notes import Work, note_closed, note_open, open_turns

LIMIT = 60.0
"""Seconds that the checkpoint at the end of a turn may take."""
BEFORE_A_CALL = 5.0
"""Seconds that a checkpoint may take while a call waits for it."""


async def begin(cwd: str, work: Work) -> Mark:
    """Save the files before the first call of a turn.  Raises `CheckpointError`."""
    worktree = await open_worktree(cwd)
    try:
        return await _save(cwd, "begin", work, calls=1, worktree=worktree)
    # Any failure, a cancellation too: without a first checkpoint, undo does not know the turn, so its note is removed and
    # other agents stop saving files at each call.  The exception goes on to `pipeline.saving`, which warns the person.
    except BaseException:
        note_closed(worktree.store, work.turn)
        raise


async def between(cwd: str, work: Work, calls: int) -> None:
    """Save the files before or after a call, while other turns go on here.  Raises `CheckpointError`."""
    await _save(cwd, "call", work, calls=calls)


async def end(cwd: str, work: Work) -> tuple[str, ...] | None:
    """Save the files at the end of a turn, and remove what is too old.  Raises `CheckpointError`.

    Returns the files that the turn has changed, relative to the working tree; `None` where its trees cannot be compared.
    """
    worktree = await open_worktree(cwd)
    try:
        await _save(cwd, "end", work, calls=0, worktree=worktree)
    finally:
        note_closed(worktree.store, work.turn)
    # Imported here, because the first call of a turn never needs it.
    from agent_hooks.checkpoints.turns import files_of

    try:
        changed = await files_of(worktree, work.turn)
    except CheckpointError as exc:
        # They are saved, so undo knows the turn; only its record lacks them.
        log().warning("%s: the files that a turn has changed are not in its record: %s", worktree.top, exc)
        changed = None
    await prune_when_due(worktree)
    return changed


async def _save(cwd: str, kind: Kind, work: Work, *, calls: int, worktree: Worktree | None = None) -> Mark:
    limit = LIMIT if kind == "end" else BEFORE_A_CALL
    try:
        with anyio.fail_after(limit):
            worktree = worktree or await open_worktree(cwd)
            async with worktree.locked():
                others = set(open_turns(worktree.store)) - {work.turn}
                _note(worktree, work, calls)
                running = running_turns(worktree)
                # Files that were saved before they became ignored are left out when nothing can have changed them.
                keep_hidden = kind != "begin" or bool(others)
                chosen = rules(worktree, cwd, MAX_FILE_SIZE, ())
                snapshot = await take(worktree, chosen, quick=kind != "end", keep_hidden=keep_hidden)
                return write_mark(worktree, kind, work, snapshot, running=running)
    except TimeoutError as exc:
        if worktree is not None:
            # A checkpoint that takes long is finished in the background, so that the next one is quick.
            await start_removal(worktree, FINISH)
        raise GitTimeoutError(
            f"it took longer than {limit:g} s{_named(worktree)}; `checkpoints.enabled` turns checkpoints off"
        ) from exc


def _named(worktree: Worktree | None) -> str:
    """Return the files that may be the reason for a checkpoint that takes long."""
    found = [] if worktree is None else worktree.pipes.irregular
    return f" ({', '.join(map(printable, found))}: neither a file nor a symlink)" if found else ""


def _note(worktree: Worktree, work: Work, calls: int) -> None:
    try:
        note_open(worktree.store, work.turn, calls=calls)
    except OSError as exc:
        raise worktree.failed(exc) from None
