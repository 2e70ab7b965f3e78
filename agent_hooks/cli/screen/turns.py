"""The turns of an agent, a plan to take some back, and the report of an undo, as lines for a user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from agent_hooks.checkpoints import REDO, Turn, Undone, UndoPlan, printable
from agent_hooks.cli.streams import echo, tell
from agent_hooks.errors import count

# The ignored paths that are named, and the files of one turn.
_MOST_IGNORED, _MOST_FILES = 10, 20


def when(seconds: float) -> str:
    """Return a time for a person, in the time zone of this machine."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def turn_line(turn: Turn) -> str:
    """Return number, time, agent and prompt of a turn, and how many files it changed."""
    number = "" if turn.number is None else f"{turn.number}  "
    prompt = f"  {turn.work.prompt}" if turn.work.prompt else ""
    return f"{number}{when(turn.created)}  {turn.work.agent}{prompt}: {count(len(turn.paths), 'file')}"


def not_saved(ignored: Sequence[str]) -> str:
    """Return a line with the paths that git ignores, which no checkpoint holds."""
    names = ", ".join(map(printable, ignored[:_MOST_IGNORED]))
    more = f" and {count(len(ignored) - _MOST_IGNORED, 'more path')}" if len(ignored) > _MOST_IGNORED else ""
    return f"not saved, because git ignores them: {names}{more}"


def plan_lines(plan: UndoPlan, turns: Sequence[Turn] = ()) -> list[str]:
    """Return the turns that an undo takes back with their files, and the paths that stay as they are.

    `turns`: shown in the place of those of the plan.
    """
    edited = set(plan.edited)
    lines = []
    for turn in turns or plan.turns:
        lines.append(turn_line(turn))
        for path in turn.paths[:_MOST_FILES]:
            since = "  (edited since; the edit is kept beside)" if path in edited else ""
            lines.append(f"    {printable(path)}{since}")
        if len(turn.paths) > _MOST_FILES:
            lines.append(f"    and {count(len(turn.paths) - _MOST_FILES, 'more file')}")
    lines += [f"not taken back: {left}" for left in plan.left]
    return [*lines, not_saved(plan.ignored)] if plan.ignored else lines


def undo_question(plan: UndoPlan) -> str:
    """Return the question before an undo."""
    if any(turn.is_undo for turn in plan.turns):
        return "Bring back the changes that this undo took back?"
    return f"Take back {count(len(plan.turns), 'turn')}?"


def nothing_to_undo(plan: UndoPlan) -> str:
    """Return the sentence about a plan that changes no file."""
    return "nothing to take back" if plan.left else "nothing to take back: the files are as they were before"


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
