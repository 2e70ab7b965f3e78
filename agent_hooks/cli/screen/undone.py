"""The report of an undo, for a person."""

from __future__ import annotations

from agent_hooks.checkpoints import REDO, Undone, printable
from agent_hooks.cli.streams import echo, tell
from agent_hooks.errors import count


def report_undone(done: Undone) -> bool:
    """Print what an undo did, and return whether all of it could be done."""
    undo = len(done.turns) == 1 and done.turns[0].is_undo
    which = "an undo" if undo else count(len(done.turns), "turn")
    failed = f", {count(len(done.failed), 'file')} failed" if done.failed else ""
    files = f"{count(len(done.written), 'file')} written, {count(len(done.deleted), 'file')} deleted{failed}"
    tell(f"took back {which}: {files}; `{REDO}` brings that back")
    for kept in done.kept:
        echo(f"kept: {printable(kept.path)} was edited since; that edit is now {printable(kept.kept_as)}", err=True)
    for left in done.left:
        echo(f"not taken back: {left}", err=True)
    for one in done.failed:
        echo(f"failed: {one}", err=True)
    return not done.failed
