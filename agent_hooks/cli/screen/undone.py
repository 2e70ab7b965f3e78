"""The report of an undo, for a person."""

from __future__ import annotations

from collections.abc import Iterator

from agent_hooks.checkpoints import REDO, Undone, printable
from agent_hooks.cli.streams import echo, tell
from agent_hooks.errors import count


def report_undone(done: Undone) -> bool:
    """Print what an undo did, and return whether all of it could be done."""
    tell(f"{summary_of(done)}; `{REDO}` brings that back")
    for line in remarks_on(done):
        echo(line, err=True)
    return not done.failed


def summary_of(done: Undone, which: str = "") -> str:
    """Return what an undo did, in one line; `which`: the things that it took back, in the place of the turns."""
    undo = len(done.turns) == 1 and done.turns[0].is_undo
    did = "brought the changes of an undo back" if undo else f"took back {which or count(len(done.turns), 'turn')}"
    failed = f", {count(len(done.failed), 'file')} failed" if done.failed else ""
    files = f"{count(len(done.written), 'file')} written, {count(len(done.deleted), 'file')} deleted"
    return f"{did}: {files}{failed}"


def remarks_on(done: Undone) -> Iterator[str]:
    """Yield a line for each later edit that is kept, and for each file that stays as it is."""
    for kept in done.kept:
        yield f"kept: {printable(kept.path)} was edited since; that edit is now {printable(kept.kept_as)}"
    for left in done.left:
        yield f"not taken back: {left}"
    for one in done.failed:
        yield f"failed: {one}"
