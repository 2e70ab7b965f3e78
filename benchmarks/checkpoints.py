"""The cost of a checkpoint, beside the git commands that a person would type."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from agent_hooks import checkpoints
from agent_hooks.checkpoints import keeping
from agent_hooks.turn_notes import Work, store_of
from benchmarks.harness import Effort, Rounds, Row
from benchmarks.peer_runs import Peers

FILES = 20_000
TO_GIT = (2, 1.5)
TO_STATUS = (2, 1.5)
MILLISECONDS = 500


def plant(top: Path, count: int) -> None:
    """Make a repository with `count` committed files, as a clone would have them."""
    for number in range(count):
        path = top / f"d{number // 1000}" / f"s{number // 50}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {number}\n" * 50)
    git(top, "init", "-q")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "all")
    git(top, "gc", "-q")


def git(top: Path, *args: str, index: str | None = None) -> None:
    """Run git."""
    environment = os.environ if index is None else {**os.environ, "GIT_INDEX_FILE": index}
    settings = ("user.name=b", "user.email=b@example.com", "maintenance.auto=false", "gc.auto=0")
    options = [part for each in settings for part in ("-c", each)]
    subprocess.run(["git", *options, *args], cwd=top, env=environment, check=True, stdout=subprocess.DEVNULL)


def by_hand(top: Path) -> None:
    """Save the files as a tree, with a copy of the index."""
    index = shutil.copy2(top / ".git" / "index", top / ".git" / "copy")
    git(top, "add", "-A", index=str(index))
    git(top, "write-tree", index=str(index))


def status(top: Path) -> None:
    """Let git tell what has changed."""
    git(top, "status")


def create(top: Path) -> None:
    """Make a checkpoint."""
    asyncio.run(checkpoints.create(top, "bench", 0))


def begin_turn(top: Path) -> None:
    """Make the checkpoint of a turn, which is finished before its first call."""
    asyncio.run(keeping.begin(str(top), Work(turn="bench", session_id="bench")))


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure in a temporary repository, in which one file changes from round to round."""
    count = 500 if effort.quick else FILES
    top = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        plant(top, count)
        # This refreshes the index.
        git(top, "status")
        first = _seconds(create, top)
        # The first `begin_turn` saves an edit, and the second finds nothing changed.
        sides = {"ours": create, "git": by_hand, "edited": begin_turn, "turn": begin_turn, "status": status}
        rounds = _rounds(sides, top, 2 if effort.quick else 11)
    finally:
        shutil.rmtree(store_of(str(top)), ignore_errors=True)
        shutil.rmtree(top)
    must_status, goal_status = TO_STATUS
    must, goal = TO_GIT
    name = f"checkpoint, {count:,} files"
    return [
        Row(name, rounds.ratio("ours", "git"), must=must, goal=goal, note="to git add -A and write-tree"),
        Row(
            f"a turn's checkpoint, {count:,} files",
            rounds.ratio("turn", "status"),
            must=must_status,
            goal=goal_status,
            note="to git status, nothing changed since the last",
        ),
        Row(
            f"a turn's checkpoint after an edit, {count:,} files",
            rounds.ratio("edited", "status"),
            note="to git status",
        ),
        Row(f"{name}, warm", rounds.seconds("ours") * 1e3, "ms", must=MILLISECONDS),
        Row(f"{name}, the first", first * 1e3, "ms", note="reads each file once, copies what git has packed"),
    ]


def _rounds(sides: dict[str, Callable[[Path], None]], top: Path, count: int) -> Rounds:
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(count):
        for name, side in sides.items():
            if name != "turn":
                (top / "d0" / "changes.txt").write_text(f"{name} {number}\n")
            times[name].append(_seconds(side, top))
    return Rounds(times)


def _seconds(side: Callable[[Path], None], top: Path) -> float:
    begin = perf_counter()
    side(top)
    return perf_counter() - begin
