"""Checkpoints that are made without any hook, and undo over turns, sessions and agents."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import anyio
import anyio.from_thread
import pytest

from agent_hooks import HookRunner, checkpoints
from agent_hooks.checkpoints import CheckpointError, pruning
from agent_hooks.checkpoints.git import open_worktree
from agent_hooks.checkpoints.marks import read_marks
from agent_hooks.checkpoints.pruning import prune_store
from agent_hooks.pipeline.order import call_tool
from agent_hooks.storage.birth import born
from agent_hooks.turn_notes import store_of, stores_directory
from support import until
from working import Agent, files, git, repository, undo

pytestmark = pytest.mark.anyio


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository with a tracked, a changed, an untracked and an ignored file."""
    return repository(project)


async def test_what_an_agent_broke_three_turns_ago_comes_back_and_a_later_edit_stays(repo: Path) -> None:
    """The agents used `sed`, `rm` and `mv`; untracked files come back too, and the edit since is a file of its own."""
    before = files(repo)
    agent = Agent(repo)
    await agent.turn("tidy up", "sed -i s/1/ONE/ tracked; rm -r src; mv untracked elsewhere")
    await agent.turn("look", "true")
    await Agent(repo, "two", "codex").turn("more", "echo new > made; chmod +x tracked")
    (repo / "mine").write_text("an edit since\n")
    done = await undo(repo, 2)
    assert files(repo) == {**before, "mine": "an edit since\n"}
    assert not (repo / "tracked").stat().st_mode & 0o100
    assert (done.kept, done.left, done.failed) == ((), (), ())
    assert done.written == ("src/a.py", "tracked", "untracked")
    assert done.deleted == ("elsewhere", "made")


async def test_a_later_edit_of_the_same_file_is_kept_beside_and_named(repo: Path) -> None:
    """The file is as it was before the turn; an edit between two turns is kept as well."""
    agent = Agent(repo)
    await agent.turn("one", "echo agent > untracked")
    (repo / "untracked").write_text("between\n")
    await agent.turn("two", "echo again > untracked; echo x > made")
    (repo / "untracked").write_text("since\n")
    (repo / "made").write_text("also mine now\n")
    plan = await checkpoints.plan_undo(repo, 2)
    assert plan.edited == ("made", "untracked")
    done = await checkpoints.take_back(repo, plan)
    assert (repo / "untracked").read_text() == "never added\n"
    assert not (repo / "made").exists()
    kept = {
        each.path: [(repo / one.kept_as).read_text() for one in done.kept if one.path == each.path]
        for each in done.kept
    }
    assert {path: sorted(texts) for path, texts in kept.items()} == {
        "made": ["also mine now\n"],
        "untracked": ["between\n", "since\n"],
    }
    assert all(".edited-before-undo-" in each.kept_as for each in done.kept)


async def test_a_file_that_was_deleted_since_stays_deleted_and_is_named(repo: Path) -> None:
    """The deletion is a later edit."""
    await Agent(repo).turn("one", "echo agent > untracked; echo agent >> tracked")
    (repo / "untracked").unlink()
    done = await undo(repo)
    assert [str(each) for each in done.left] == ["untracked: was deleted since"]
    assert not (repo / "untracked").exists()
    assert done.written == ("tracked",)


async def test_an_undo_can_be_taken_back_and_that_too(repo: Path) -> None:
    """Each time, the files are those before it, with the edits that were kept beside."""
    agent = Agent(repo)
    await agent.turn("one", "rm -r src; echo agent > untracked")
    (repo / "untracked").write_text("since\n")
    broken = files(repo)
    await undo(repo)
    mended = files(repo)
    assert "src/a.py" in mended
    with pytest.raises(CheckpointError, match="no turn of an agent has changed files here"):
        await checkpoints.plan_undo(repo)
    for expected in (broken, mended, broken):
        plan = await checkpoints.plan_redo(repo)
        assert plan is not None
        await checkpoints.take_back(repo, plan)
        assert {
            name.partition(".edited-before")[0]: text for name, text in files(repo).items() if "edited" not in name
        } == {name: text for name, text in expected.items() if "edited" not in name}
    assert [turn.number for turn in await checkpoints.turns(repo) if not turn.is_undo] == [1]
    await undo(repo)
    assert "src/a.py" in files(repo)


async def test_a_turn_of_reads_makes_no_checkpoint_and_costs_at_most_ten_milliseconds(repo: Path) -> None:
    """No store is made either; the time is that of ten reads and of the events of the turn."""
    agent = Agent(repo)
    bare = HookRunner([], cwd=repo)
    start = perf_counter()
    for _ in range(10):
        await call_tool(agent.tools["read"], "r", {"path": "tracked"}, runner=bare)
    alone = perf_counter() - start
    best = 1.0
    for _ in range(5):
        start = perf_counter()
        await agent.begin("read")
        for _ in range(10):
            await agent.call("read", path="tracked")
        await agent.call("ls", path=".")
        await agent.end()
        best = min(best, perf_counter() - start - alone)
    assert best < 0.01
    assert not Path(store_of(str(repo))).exists()


async def test_the_checkpoint_is_finished_before_the_first_call_that_changes_files(repo: Path) -> None:
    """The tool itself finds it; a second call of the turn makes no other one."""
    agent = Agent(repo)
    found: list[int] = []
    bash = agent.tools["bash"]
    execute = bash.execute

    async def watched(*args: Any, **options: Any) -> Any:
        found.append(len(await checkpoints.list(repo)))
        return await execute(*args, **options)

    bash.execute = watched  # type: ignore[method-assign]
    await agent.begin()
    await agent.call("read", path="tracked")
    assert await checkpoints.list(repo) == ()
    await agent.shell("echo 1 > untracked")
    await agent.shell("echo 2 > untracked")
    await agent.end()
    assert found == [1, 1]
    assert [mark.kind for mark in read_marks(await open_worktree(repo))] == ["begin", "end"]


# ---- the store -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
async def test_checkpoints_need_nothing_of_the_repository(repo: Path, tmp_path: Path, packed: bool) -> None:
    """`git push --mirror` sends none, `git gc --prune=now` takes none, and deleting `.git` loses none."""
    if packed:
        git(repo, "gc", "-q")
    before = files(repo)
    await Agent(repo).turn("one", "rm -r src; echo agent > untracked; git checkout -q -- tracked")
    git(repo, "init", "-q", "--bare", str(tmp_path / "mirror"))
    git(repo, "push", "-q", "--mirror", str(tmp_path / "mirror"))
    refs = git(tmp_path / "mirror", "for-each-ref", "--format=%(refname)").split()
    assert [ref for ref in refs if not ref.startswith("refs/heads/")] == []
    objects = git(tmp_path / "mirror", "cat-file", "--batch-check", "--batch-all-objects").splitlines()
    # A commit, two trees, and three files.
    assert len(objects) == 6
    git(repo, "commit", "-qam", "two")
    git(repo, "checkout", "-q", "--orphan", "other")
    git(repo, "commit", "-qm", "alone")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    shutil.rmtree(repo / ".git")
    done = await undo(repo)
    assert (files(repo), done.failed) == (before, ())


async def test_an_agent_that_deletes_the_repository_loses_nothing_but_that(repo: Path) -> None:
    """Files that the deleted repository ignored are not taken for files that the agent made."""
    (repo / ".git" / "info" / "exclude").write_text("private\n")
    (repo / "private").write_text("not in git\n")
    (repo / "inner").mkdir()
    git(repo / "inner", "init", "-q")
    (repo / "inner" / "own").write_text("of another repository\n")
    before = files(repo)
    await Agent(repo).turn("clean", "rm -rf .git inner/.git src .gitignore untracked")
    await undo(repo)
    assert files(repo) == before


async def test_what_is_not_saved_is_named_once_in_a_session(repo: Path) -> None:
    """An untracked file over 50 MB is; ignored files are never touched."""
    with (repo / "huge").open("wb") as file:
        file.truncate(51 * 2**20)
    agent = Agent(repo)
    await agent.turn("one", "echo x > ignored; : > huge; echo y > untracked")
    await agent.turn("two", "echo z > untracked")
    assert agent.warnings == ["not in the checkpoints: huge: untracked and large: 51 MB, and the limit is 50 MB"]
    done = await undo(repo, 2)
    assert [each.path for each in done.left] == ["huge"]
    assert (repo / "ignored").read_text() == "x\n"
    assert (repo / "untracked").read_text() == "never added\n"


async def test_checkpoints_are_removed_after_thirty_days_and_above_the_limit(repo: Path, tmp_path: Path) -> None:
    """The newest turn stays; the store of a working tree without any agent goes as a whole."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    await Agent(other, "elsewhere").turn("one", "echo x > y")
    agent = Agent(repo)
    for number in range(4):
        data = os.urandom(300_000).hex()
        (repo / "untracked").write_text(data)
        await agent.turn(str(number), f"echo {number} > made")
    worktree = await open_worktree(repo)
    old = time.time() - 31 * 86_400
    store = Path(store_of(str(other)))
    for path in (store / "index", store / "marks", store / "top"):
        os.utime(path, (old, old))
    async with worktree.locked():
        await prune_store(worktree)
        assert not store.exists()
        assert len([mark for mark in read_marks(worktree) if mark.kind == "begin"]) == 4
        await prune_store(worktree, most=700_000)
    size = sum(path.stat().st_size for path in Path(store_of(str(repo))).rglob("*") if path.is_file())
    assert size <= 800_000
    assert [turn.work.prompt for turn in await checkpoints.turns(repo)][:1] == ["3"]
    await undo(repo)
    assert (repo / "made").read_text() == "2\n"
    async with worktree.locked():
        await prune_store(worktree, days=0)
    assert await checkpoints.turns(repo) == ()


@pytest.mark.parametrize("stuck", ["git", "disk"])
async def test_a_removal_gives_way_to_a_turn(repo: Path, monkeypatch: pytest.MonkeyPatch, stuck: str) -> None:
    """A turn that needs the store has it at once; the removal is tried again an hour later, and no turn is lost."""
    never, begun = Event(), anyio.Event()

    async def no_git(worktree: object) -> None:
        begun.set()
        await anyio.sleep_forever()

    def no_disk() -> int:
        anyio.from_thread.run_sync(begun.set)
        never.wait()
        return 0

    agent = Agent(repo)
    await agent.turn("one", "echo 1 > made")
    store = Path(store_of(str(repo)))
    os.utime(store / "pruned", (1, 1))
    worktree = await open_worktree(repo)
    with monkeypatch.context() as patch:
        patch.setattr(pruning, "_clean" if stuck == "git" else "_size_of_all", no_git if stuck == "git" else no_disk)
        try:
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(pruning.remove_in_background, worktree)
                    await begun.wait()
                    await agent.turn("two", "echo 2 > made")
        finally:
            never.set()
    assert (store / "prune-ended").exists()
    assert not (store / "pruned").exists()
    monkeypatch.setattr(pruning, "start_removal", pruning.remove_in_background)
    await agent.turn("three", "echo 3 > made")
    assert not (store / "pruned").exists()
    hour = time.time() - 3_700
    os.utime(store / "prune-ended", (hour, hour))
    await agent.turn("four", "echo 4 > made")
    assert (store / "pruned").exists()
    assert [turn.work.prompt for turn in await checkpoints.turns(repo)] == ["four", "three", "two", "one"]
    assert agent.warnings == []


async def test_a_process_of_its_own_removes_what_is_too_old(repo: Path) -> None:
    """The turn that finds it time starts the process and ends; a store that another process uses is left alone."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > made")
    store = Path(store_of(str(repo)))
    os.utime(store / "pruned", (1, 1))
    worktree = await open_worktree(repo)
    async with worktree.locked():
        with pytest.raises(checkpoints.CheckpointError, match="another process uses it"):
            await pruning.remove_in_background(worktree)
    assert (store / "pruned").stat().st_mtime == 1
    await pruning.prune_when_due(worktree)
    with anyio.fail_after(60):
        while (store / "pruned").stat().st_mtime == 1:
            await anyio.sleep(0.05)
        # The process holds the lock until it is done.
        async with worktree.locked():
            pass
    assert [turn.work.prompt for turn in await checkpoints.turns(repo)] == ["one"]


# ---- several agents --------------------------------------------------------------------------------------------------


async def test_an_agent_that_works_at_the_same_time_keeps_its_files(repo: Path) -> None:
    """The turn that began last is taken back alone, although the other one began before and ended after it."""
    one, two = Agent(repo, "one", "pi"), Agent(repo, "two", "codex")
    await one.begin("long")
    await one.shell("echo one > of-one; echo one >> tracked")
    await two.begin("short")
    await two.shell("echo two > of-two; rm untracked")
    await one.shell("echo one > later-of-one")
    (repo / "mine").write_text("by hand\n")
    await two.shell("echo two >> of-two")
    await two.end()
    await one.end()
    found = await checkpoints.turns(repo)
    assert [(turn.number, turn.work.agent, turn.paths) for turn in found] == [
        (1, "codex", ("of-two", "untracked")),
        (2, "pi", ("later-of-one", "of-one", "tracked")),
    ]
    await undo(repo)
    present = files(repo)
    assert "of-two" not in present
    assert present["untracked"] == "never added\n"
    assert present["later-of-one"] == present["of-one"] == "one\n"
    await undo(repo)
    assert sorted(files(repo)) == [".gitignore", "ignored", "mine", "src/a.py", "tracked", "untracked"]


async def test_a_turn_that_was_killed_does_not_claim_what_comes_after(repo: Path) -> None:
    """Its session has no end; the next turn of the same session, and the next one of another, are told from it."""
    killed = Agent(repo, "killed")
    await killed.begin("never ends")
    await killed.shell("echo 1 > by-killed")
    note = next(Path(store_of(str(repo)), "open").iterdir())
    note.unlink()
    await Agent(repo, "two").turn("next", "echo 2 > by-next")
    found = {turn.work.prompt: turn.paths for turn in await checkpoints.turns(repo)}
    assert found == {"next": ("by-next",), "never ends": ("by-killed",)}


async def test_an_empty_directory_that_stood_before_a_turn_stands_after_its_undo(repo: Path) -> None:
    """Directories that the turn has made go with their files; another undo, and a restore, do the same."""
    (repo / "out" / "before").mkdir(parents=True)
    if born(str(repo / "out")) is None:
        pytest.skip("this file system does not tell when a directory was made")
    agent = Agent(repo)
    until(lambda: time.time() - (born(str(repo / "out" / "before")) or 0) > 0.1)
    saved = await checkpoints.create(repo, "s", 0)
    await agent.turn("one", "echo 1 > out/before/file; mkdir -p out/made/deep; echo 2 > out/made/deep/file")

    def directories() -> list[str]:
        return sorted(path.name for path in (repo / "out").rglob("*") if path.is_dir())

    await checkpoints.take_back(repo, await checkpoints.plan_undo(repo))
    assert directories() == ["before"]
    redo = await checkpoints.plan_redo(repo)
    assert redo is not None
    await checkpoints.take_back(repo, redo)
    assert directories() == ["before", "deep", "made"]
    await checkpoints.restore(repo, saved)
    assert directories() == ["before"]


async def test_the_diff_of_a_turn_shows_its_changes_alone(repo: Path) -> None:
    """Names and bytes are those of git."""
    agent = Agent(repo)
    await agent.turn("one", "sed -i s/1/ONE/ tracked; mkdir -p d/e; echo n > 'd/e/ä b'")
    await agent.turn("two", "echo two > tracked")
    patch = await checkpoints.turn_diff(repo, 2)
    assert "-1\n+ONE\n" in patch
    assert "+++ b/d/e/ä b" in patch
    assert "two" not in patch
    with pytest.raises(CheckpointError, match="there is no turn 3: the newest is 1, and the oldest 2"):
        await checkpoints.turn_diff(repo, 3)


async def test_the_diff_of_sessions_leaves_out_others_and_all_that_was_taken_back(repo: Path) -> None:
    """A file that several turns have changed is one change, from the first to the last."""
    mine, other = Agent(repo, "mine"), Agent(repo, "other")
    assert await checkpoints.session_diff(repo, {"mine"}) == ""
    await mine.turn("one", "echo one > tracked")
    await other.turn("foreign", "echo foreign > theirs")
    await mine.turn("two", "echo two > tracked")
    await mine.turn("three", "echo three > third")
    await checkpoints.take_back(repo, await checkpoints.plan_undo(repo))
    patch = await checkpoints.session_diff(repo, {"mine"})
    assert patch.count("diff --git") == 1
    assert "+two\n" in patch
    assert "-one" not in patch
    both = await checkpoints.session_diff(repo, {"mine", "other"})
    assert both.count("diff --git") == 2


# ---- bad input -------------------------------------------------------------------------------------------------------


def full(store: Path) -> None:
    """Let nothing be written in the store: a file is in the place of its objects."""
    shutil.rmtree(store / "objects")
    (store / "objects").touch()
    (store / "objects").chmod(0o400)


def in_the_way(store: Path) -> None:
    """Put a file in the place of the store."""
    shutil.rmtree(store)
    store.touch()


@pytest.mark.parametrize("damage", [full, in_the_way])
async def test_a_store_that_cannot_be_written_warns_once_and_the_call_goes_on(
    repo: Path, damage: Callable[[Path], None]
) -> None:
    """The warning names the store and the reason; undo changes nothing."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    damage(Path(store_of(str(repo))))
    await agent.turn("two", "echo 2 > untracked")
    await agent.turn("three", "echo 3 > untracked")
    assert len(agent.warnings) == 1
    assert agent.warnings[0].startswith("no checkpoint, so `agent-hooks undo` will not know this turn: ")
    assert (repo / "untracked").read_text() == "3\n"
    with pytest.raises(CheckpointError):
        await checkpoints.plan_undo(repo)
    assert (repo / "untracked").read_text() == "3\n"


@pytest.mark.parametrize("name", ["HEAD", "config", "index", "info/attributes", "info/exclude", "top", "whole"])
async def test_a_half_written_store_is_put_right(repo: Path, name: str) -> None:
    """The turns before are known, and can be taken back."""
    before = files(repo)
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    (Path(store_of(str(repo))) / name).write_bytes(b"")
    await agent.turn("two", "echo 2 > tracked")
    assert agent.warnings == []
    await undo(repo, 2)
    assert files(repo) == before


async def test_a_half_written_mark_counts_as_none(repo: Path) -> None:
    """The other turns stay."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    await agent.turn("two", "echo 2 > tracked")
    marks = sorted(Path(store_of(str(repo)), "marks").iterdir())
    marks[-1].write_bytes(marks[-1].read_bytes()[:20])
    Path(store_of(str(repo)), "marks", "9" * 20).write_bytes(b"\xff")
    await undo(repo)
    assert (repo / "tracked").read_text().endswith("mine, not committed\n")
    assert (repo / "untracked").read_text() == "1\n"


async def test_an_agent_home_that_cannot_be_written_stops_no_agent(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies below a file; the person hears of it once."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "file" / "home"))
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    await agent.turn("two", "echo 2 > untracked")
    assert len(agent.warnings) == 1
    assert stores_directory() in agent.warnings[0]


async def test_outside_of_a_working_tree_nothing_is_made_or_said(project: Path) -> None:
    """Few directories that are no repository need an explanation."""
    agent = Agent(project)
    await agent.turn("one", "echo 1 > file")
    assert agent.warnings == []
    assert not Path(stores_directory()).exists()
