"""The number of checkpoints below the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_hooks import checkpoints
from agent_hooks.checkpoints.counting import CheckpointCount
from agent_hooks.checkpoints.git import open_worktree
from agent_hooks.checkpoints.marks import read_marks
from working import Agent, repository

pytestmark = pytest.mark.anyio


async def test_the_checkpoints_of_a_session_are_counted(project: Path) -> None:
    """Those before the turns that changed files, of this session; a pruned one counts no more."""
    repo = repository(project)
    count = CheckpointCount()
    assert count.of(str(repo), "one") == 0
    agent, other = Agent(repo, "one"), Agent(repo, "two")
    await agent.turn("first", "echo 1 > a")
    assert count.of(str(repo), "one") == 1
    await agent.turn("reads", "cat a")
    await agent.turn("second", "echo 2 > a")
    await other.turn("another", "echo 3 > a")
    assert (count.of(str(repo), "one"), count.of(str(repo), "two")) == (2, 1)
    await checkpoints.prune(repo, "one", keep_last=1)
    assert count.of(str(repo), "one") == 1


async def test_a_half_written_mark_counts_when_it_is_whole(project: Path) -> None:
    """And a directory of another working tree is counted anew; without a working tree, there is no number."""
    repo = repository(project)
    await Agent(repo, "one").turn("first", "echo 1 > a")
    worktree = await open_worktree(repo)
    mark = next(each for each in read_marks(worktree) if each.kind == "begin")
    path = Path(worktree.store, "marks", mark.name)
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    count = CheckpointCount()
    assert count.of(str(repo), "one") == 0
    path.write_bytes(whole)
    assert count.of(str(repo), "one") == 1
    other = project.parent / "other"
    (other / ".git").mkdir(parents=True)
    assert count.of(str(other), "one") == 0
    assert count.of("/", "one") is None
