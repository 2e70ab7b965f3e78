"""The records of turns: each call has the id of its turn, and the end of the turn has the changed files."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_hooks import AssistantMessage, checkpoints
from agent_hooks.checkpoints.git import open_worktree
from agent_hooks.checkpoints.marks import read_marks
from agent_hooks.pipeline.order import preflight, run_tool
from agent_hooks.records import Records
from agent_hooks.records.lines import Decision, Result, Turn
from agent_hooks.values.events import TurnEnd, TurnStart
from recording import TOKEN, Recorded
from working import Agent, git, repository

pytestmark = pytest.mark.anyio


MESSAGE = AssistantMessage(content="done", timestamp=0, provider="none", model="none")


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository."""
    return repository(project)


def working(recorded: Recorded, repo: Path, session: str = "one") -> Agent:
    """Return an agent whose calls are recorded."""
    return Agent(repo, session, records=Records(home=str(recorded.home)))


async def test_the_calls_of_a_turn_have_its_id_and_its_end_has_the_files(recorded: Recorded, repo: Path) -> None:
    """A call before the first change too; the name of the checkpoint is that of the list."""
    agent = working(recorded, repo)
    await agent.begin()
    await agent.runner.emit(TurnStart(turn_index=4, timestamp=0))
    await agent.call("read", path="tracked")
    await agent.shell(f"rm untracked; echo x > {TOKEN}")
    await agent.end()
    await agent.turn("look", "ls")
    agent.runner.end_records()
    (checkpoint,) = await checkpoints.list(repo)
    first, second, third = (line.turn_id for line in recorded.lines(Decision))
    assert first == second == checkpoint.turn
    assert third not in ("", first)
    assert [(line.turn_id, line.checkpoint) for line in recorded.lines(Result)] == [
        (first, ""),
        (first, checkpoint.name),
        (third, ""),
    ]
    begun, saved = recorded.lines(Turn)
    assert (begun.event, begun.turn_id) == ("start", first)
    assert (saved.event, saved.turn_id, saved.turn) == ("saved", first, 4)
    assert (saved.tree, saved.checkpoint, saved.more) == (str(repo), checkpoint.name, 0)
    assert saved.files == ("[redacted github-token]", "untracked")


async def test_a_call_outside_of_any_turn_has_no_id_of_one(recorded: Recorded, repo: Path) -> None:
    """Its prompt was not reported; a call that may change files begins a turn of its own, and the next call is in it."""
    agent = working(recorded, repo)
    await agent.call("read", path="tracked")
    await agent.shell("echo 1 > new")
    await agent.call("read", path="new")
    await agent.end()
    await agent.call("read", path="new")
    agent.runner.end_records()
    first, second, third, last = (line.turn_id for line in recorded.lines(Decision))
    assert (first, last, second == third != "") == ("", "", True)
    assert recorded.line(Turn).files == ("new",)


async def test_a_turn_whose_calls_changed_nothing_is_saved_without_files(recorded: Recorded, repo: Path) -> None:
    """The command has written, and the file is as before."""
    agent = working(recorded, repo)
    await agent.turn("run it", "touch tracked")
    agent.runner.end_records()
    saved = recorded.line(Turn)
    assert (saved.event, saved.files, saved.more, saved.turn) == ("saved", (), 0, None)
    assert saved.checkpoint


async def test_each_of_two_turns_at_one_time_has_its_own_files(recorded: Recorded, repo: Path) -> None:
    """An edit of the person between their calls belongs to none of them."""
    one, other = working(recorded, repo), working(recorded, repo, "two")
    await other.begin("the other")
    await other.shell("echo 1 > theirs-before")
    await one.begin("the one")
    await one.shell("echo 1 > mine")
    await other.shell("echo 1 > theirs")
    (repo / "person").write_text("x")
    await one.shell("echo 2 >> mine")
    await one.end()
    await other.end()
    for agent in (one, other):
        agent.runner.end_records()
    assert {line.session: line.files for line in recorded.lines(Turn)} == {
        "one": ("mine",),
        "two": ("theirs", "theirs-before"),
    }


async def test_of_many_files_the_first_are_named_and_the_rest_is_counted(recorded: Recorded, repo: Path) -> None:
    """A line of a record stays short."""
    agent = working(recorded, repo)
    await agent.turn("make files", "for i in $(seq 100 302); do echo $i > file-$i; done")
    agent.runner.end_records()
    saved = recorded.line(Turn)
    assert (len(saved.files), saved.files[0], saved.files[-1], saved.more) == (200, "file-100", "file-299", 3)


async def test_a_turn_in_two_working_trees_has_a_line_for_each(recorded: Recorded, repo: Path, tmp_path: Path) -> None:
    """An agent may work in a worktree of git beside the first one."""
    other = tmp_path / "other"
    git(repo, "worktree", "add", "-q", str(other))
    agent = working(recorded, repo)
    await agent.begin()
    await agent.shell("echo 1 > here")
    place = replace(agent.place, cwd=str(other))
    call = await preflight(
        agent.tools["bash"], "c2", {"command": f"echo 1 > {other}/there"}, runner=agent.runner, surroundings=place
    )
    assert not (await run_tool(call)).is_error
    await agent.end()
    agent.runner.end_records()
    assert {line.tree: line.files for line in recorded.lines(Turn)} == {str(repo): ("here",), str(other): ("there",)}
    assert len({line.turn_id for line in recorded.lines(Decision)}) == 1


async def test_a_beginning_that_is_gone_costs_the_record_and_not_the_checkpoint(
    recorded: Recorded, repo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the reason; the person is not told that undo would not know the turn."""
    agent = working(recorded, repo)
    await agent.begin()
    await agent.shell("echo 1 > new")
    worktree = await open_worktree(repo)
    (mark,) = read_marks(worktree)
    Path(worktree.store, "marks", mark.name).unlink()
    with caplog.at_level(logging.WARNING, "agent_hooks"):
        await agent.end()
    agent.runner.end_records()
    assert recorded.lines(Turn) == []
    assert agent.warnings == []
    assert "the files that a turn has changed are not in its record" in caplog.text
    assert [each.kind for each in read_marks(worktree)] == ["end"]


async def test_the_end_of_a_turn_in_the_records_has_its_id(recorded: Recorded, repo: Path) -> None:
    """A reader of the records finds the calls of a turn by it."""
    agent = working(recorded, repo)
    await agent.begin()
    await agent.shell("echo 1 > new")
    await agent.runner.emit(TurnEnd(turn_index=0, message=MESSAGE))
    await agent.end()
    agent.runner.end_records()
    ended, saved = recorded.lines(Turn)
    assert (ended.event, saved.event) == ("end", "saved")
    assert ended.turn_id == saved.turn_id != ""
