"""The cost of a checkpoint, beside the git commands that a person would type.

The turns of agents are measured in a small working tree and in a large one, each beside `git status` in the same round.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from time import perf_counter

from agent_hooks import HookRunner, checkpoints
from agent_hooks.checkpoints import keeping
from agent_hooks.host.tools import builtin_tools
from agent_hooks.pipeline import saving
from agent_hooks.pipeline.order import new_call
from agent_hooks.turn_notes import Work, store_of
from benchmarks.harness import Effort, Rounds, Row
from benchmarks.peer_runs import Peers

FILES = 20_000
SMALL = 100
READS = 10
TO_GIT = (2, 1.5)
TO_STATUS = (2, 1.5)
MILLISECONDS = 500
# Milliseconds of a turn that only reads.
OF_READS = 10


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


def end_turn(top: Path) -> None:
    """Make the checkpoint at the end of a turn."""
    asyncio.run(keeping.end(str(top), Work(turn="bench", session_id="bench")))


class Reads:
    """A turn that only reads: the prompt, calls that read in both ways, and the end."""

    def __init__(self, top: Path) -> None:
        self._runner = HookRunner([], cwd=top, session_id="reads")
        saving.keep_turns(self._runner.engine, "bench")
        self._tools = {tool.name: tool for tool in builtin_tools(cwd=str(top))}

    def __call__(self, top: Path) -> None:
        """Take the turn, without running its calls."""
        asyncio.run(self._turn())

    async def _turn(self) -> None:
        engine, place = self._runner.engine, self._runner.engine.surroundings
        await saving.begin_turn(engine, "read", place, 1)
        for number in range(READS // 2):
            for tool, words in (("read", {"path": "d0/s0/f0.py"}), ("bash", {"command": f"cat d0/s0/f{number}.py"})):
                call = new_call(self._tools[tool], str(number), words, runner=self._runner)
                assert saving.save_files(call) is call, f"{tool} counts as a write"
        await saving.end_turn(engine, place)


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure in temporary repositories, in which one file changes from round to round."""
    rounds = 2 if effort.quick else 11
    large = 500 if effort.quick else FILES
    return [*_of_turns(SMALL, rounds), *_of_turns(large, rounds), *_by_hand(large, rounds)]


def _of_turns(count: int, number: int) -> list[Row]:
    top = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        plant(top, count)
        # This refreshes the index.
        git(top, "status")
        end_turn(top)
        # The first `begin_turn` saves an edit of the person, and the second finds nothing changed.
        sides = {
            "reads": Reads(top),
            "edited": begin_turn,
            "begin": begin_turn,
            "end": end_turn,
            "status": status,
        }
        rounds = _rounds(sides, top, number, unchanged={"reads", "begin"})
    finally:
        shutil.rmtree(store_of(str(top)), ignore_errors=True)
        shutil.rmtree(top)
    name = f"{count:,} files"
    is_small = count == SMALL
    must, goal = (None, None) if is_small else TO_STATUS
    to = "to git status"
    return [
        Row(f"a turn of {READS} reads, {name}", rounds.ratio("reads", "status"), note=to),
        Row(f"a turn of {READS} reads, {name}, in ms", rounds.seconds("reads") * 1e3, "ms", must=OF_READS),
        Row(
            f"before the first write, {name}",
            rounds.ratio("begin", "status"),
            must=must,
            goal=goal,
            note=f"{to}, nothing changed since the last turn",
        ),
        Row(f"before the first write, {name}, after an edit", rounds.ratio("edited", "status"), note=to),
        Row(f"at the end of a turn of one write, {name}", rounds.ratio("end", "status"), note=to),
        Row(f"git status, {name}", rounds.seconds("status") * 1e3, "ms", note="the measure of the rows above"),
    ]


def _by_hand(count: int, number: int) -> list[Row]:
    top = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        plant(top, count)
        # This refreshes the index.
        git(top, "status")
        first = _seconds(create, top)
        rounds = _rounds({"ours": create, "git": by_hand}, top, number)
    finally:
        shutil.rmtree(store_of(str(top)), ignore_errors=True)
        shutil.rmtree(top)
    must, goal = TO_GIT
    name = f"checkpoint, {count:,} files"
    return [
        Row(name, rounds.ratio("ours", "git"), must=must, goal=goal, note="to git add -A and write-tree"),
        Row(f"{name}, warm", rounds.seconds("ours") * 1e3, "ms", must=MILLISECONDS),
        Row(f"{name}, the first", first * 1e3, "ms", note="reads each file once, copies what git has packed"),
    ]


def _rounds(sides: dict[str, Callable[[Path], None]], top: Path, count: int, unchanged: Collection[str] = ()) -> Rounds:
    """Run the sides in turn; a file changes before each of them but those in `unchanged`."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    # A side loads its modules when it first runs, so the round before the first does not count.
    for number in range(-1, count):
        for name, side in sides.items():
            if name not in unchanged:
                (top / "d0" / "changes.txt").write_text(f"{name} {number}\n")
            seconds = _seconds(side, top)
            if number >= 0:
                times[name].append(seconds)
    return Rounds(times)


def _seconds(side: Callable[[Path], None], top: Path) -> float:
    begin = perf_counter()
    side(top)
    return perf_counter() - begin
