"""Turns of agents that do what few expect: links, removed directories, undos in between, a damaged store."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from agent_hooks import checkpoints
from agent_hooks.checkpoints import CheckpointError
from agent_hooks.checkpoints.git import open_worktree
from agent_hooks.checkpoints.pruning import prune_store
from agent_hooks.turn_notes import open_turns, store_of
from running import Command
from support import PATIENCE
from working import Agent, files, git, repository, undo

pytestmark = pytest.mark.anyio


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository with a tracked, a changed, an untracked and an ignored file."""
    return repository(project)


async def test_a_directory_that_became_a_link_to_its_new_place_comes_back(repo: Path) -> None:
    """Its files are not those that the link leads to."""
    before = files(repo)
    await Agent(repo).turn("move", "mv src lib; ln -s lib src")
    done = await undo(repo)
    assert (files(repo), done.left, done.failed) == (before, (), ())
    assert not (repo / "src").is_symlink()


async def test_names_of_every_kind_come_back(repo: Path) -> None:
    """Line breaks, blanks, quotes, patterns, and bytes that are no text."""
    names = ["a\nb", "-x", " s ", "t\t", ":!x", "ä", "'q'", '"dq"', "b\\s", "*", "[z]", os.fsdecode(b"\xff\xfe")]
    for name in names:
        (repo / name).write_text("by hand")
    before = {path.name: path.read_bytes() for path in repo.iterdir() if path.is_file()}
    await Agent(repo).turn(
        "break", 'for f in ./*; do [ "$f" = ./ignored ] || echo broken > "$f"; done 2>&-; rm -- -x ./a*'
    )
    await undo(repo)
    assert {path.name: path.read_bytes() for path in repo.iterdir() if path.is_file()} == before


async def test_a_working_tree_that_an_agent_removed_comes_back(repo: Path) -> None:
    """The error names the remedy: the directory has to be there."""
    before = files(repo)
    await Agent(repo).turn("clean", f"cd /; rm -rf {repo}")
    with pytest.raises(CheckpointError, match="is gone, and its checkpoints are kept: `mkdir` it"):
        await undo(repo)
    repo.mkdir()
    await undo(repo)
    assert files(repo) == {path: text for path, text in before.items() if path != "ignored"}


async def test_an_agent_that_removes_its_own_directory_has_a_checkpoint_at_the_end(repo: Path) -> None:
    """An edit after the turn is the person's."""
    agent = Agent(repo / "src")
    await agent.turn("clean", "cd ..; rm -r src")
    (repo / "tracked").write_text("by hand\n")
    assert agent.warnings == []
    done = await undo(repo)
    assert (done.written, done.kept) == (("src/a.py",), ())


async def test_a_turn_that_goes_on_after_an_undo_counts_again(repo: Path) -> None:
    """Its later changes can be taken back; the undo can be taken back as well."""
    before = files(repo)
    agent = Agent(repo)
    await agent.turn("first", "echo 1 > untracked")
    await agent.begin("second")
    await agent.shell("echo 2 > tracked")
    await undo(repo)
    assert files(repo) == {**before, "untracked": "1\n"}
    await agent.shell("echo 3 > made; echo 3 > tracked")
    await agent.end()
    found = [(turn.number, turn.work.prompt, turn.paths) for turn in await checkpoints.turns(repo) if turn.number]
    assert found == [(1, "second", ("made", "tracked")), (2, "first", ("untracked",))]
    await undo(repo)
    assert files(repo) == {**before, "untracked": "1\n"}
    plan = await checkpoints.plan_redo(repo)
    assert plan is not None
    await checkpoints.take_back(repo, plan)
    assert files(repo) == {**before, "untracked": "1\n", "made": "3\n", "tracked": "3\n"}
    await undo(repo, 2)
    assert files(repo) == before


async def test_what_calls_of_several_agents_changed_at_once_comes_back_with_all_of_their_turns(repo: Path) -> None:
    """One of the turns alone leaves it, and names it."""
    before = files(repo)
    one, two = Agent(repo, "one"), Agent(repo, "two", "codex")
    for agent in (one, two):
        await agent.begin("both")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.shell, "while [ ! -e .git/y ]; do sleep 0.02; done; echo one >> untracked")
        tasks.start_soon(two.shell, "touch .git/y; sleep 0.3; echo two >> untracked")
    await two.shell("echo own > of-two")
    for agent in (one, two):
        await agent.end()
    assert {turn.number for turn in await checkpoints.turns(repo)} == {1, 2}
    for _ in range(2):
        done = await undo(repo)
        if (repo / "untracked").read_text() != "never added\n":
            assert [each.path for each in done.left] == ["untracked"]
            break
    else:
        pytest.fail("the shared file came back with one of the turns")
    plan = await checkpoints.plan_undo(repo, len([turn for turn in await checkpoints.turns(repo) if turn.number]))
    await checkpoints.take_back(repo, plan)
    assert files(repo) == before


async def pack(repo: Path) -> None:
    """Put the objects so far into a pack, as each removal does."""
    worktree = await open_worktree(repo)
    async with worktree.locked():
        await prune_store(worktree)


async def test_a_store_whose_objects_were_cut_is_mended_and_the_whole_turns_stay(repo: Path) -> None:
    """A loss of power may do that; the next turns are as safe as before."""
    agent = Agent(repo)
    await agent.turn("whole", "echo 1 > tracked")
    await pack(repo)
    await agent.turn("damaged", "echo 2 > tracked; echo 2 > untracked")
    objects = Path(store_of(str(repo))) / "objects"
    for path in [each for each in objects.rglob("*") if each.is_file() and len(each.parent.name) == 2]:
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:5])
    (repo / "untracked").write_text("since\n")
    plan = await checkpoints.plan_undo(repo)
    assert [turn.work.prompt for turn in plan.turns] == ["whole"]
    assert plan.damaged == 1
    before = files(repo)
    await agent.turn("next", "rm -r src tracked untracked")
    await undo(repo)
    assert files(repo) == before


async def test_a_pack_that_was_cut_loses_only_the_turns_that_need_it(repo: Path) -> None:
    """What is readable in it stays."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > tracked")
    await pack(repo)
    for path in (Path(store_of(str(repo))) / "objects" / "pack").iterdir():
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-30])
    before = files(repo)
    await agent.turn("two", "rm -r src; echo 2 > tracked")
    await undo(repo)
    assert files(repo) == before


async def test_a_full_disk_is_named_and_undo_changes_nothing(repo: Path, command: Command) -> None:
    """A limit on the size of files stands for it; the turns before are there when there is space again."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    (repo / "big").write_bytes(os.urandom(300_000))
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    line = command.line("undo", "--yes", first=limit)
    done = subprocess.run(line, cwd=repo, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "; raise the limit on the size of a file (ulimit -f)" in done.stderr
    assert (repo / "untracked").read_text() == "1\n"
    await undo(repo)
    assert (repo / "untracked").read_text() == "never added\n"


async def test_a_turn_whose_first_checkpoint_fails_is_not_one_that_goes_on(repo: Path) -> None:
    """Another agent there would save the files at each of its calls."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    store = store_of(str(repo))
    shutil.rmtree(os.path.join(store, "objects"))
    Path(store, "objects").touch()
    await agent.begin("two")
    await agent.shell("echo 2 > untracked")
    assert open_turns(store) == {}


async def test_a_repository_that_an_agent_made_inside_is_named(repo: Path) -> None:
    """Its files stay."""
    await Agent(repo).turn("one", "mkdir new; git init -q new; echo 1 > new/f; echo 1 > untracked")
    done = await undo(repo)
    assert [str(each) for each in done.left] == ["new/: is a git repository of its own, which undo does not delete"]
    assert (repo / "new" / "f").exists()


async def test_ignored_files_are_named_before_an_undo(repo: Path, command: Command) -> None:
    """A directory that is ignored has one name."""
    (repo / ".gitignore").write_text("ignored\nbuild/\n")
    (repo / "build").mkdir()
    (repo / "build" / "x").touch()
    await Agent(repo).turn("one", "echo 1 > untracked")
    assert "not saved, because git ignores them: build/, ignored\n" in command("undo", "--yes").stdout


async def test_a_linked_working_tree_has_checkpoints_of_its_own(repo: Path, tmp_path: Path) -> None:
    """The main one knows none of its turns."""
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    before = files(tmp_path / "linked")
    await Agent(tmp_path / "linked").turn("one", "rm -r src .git")
    await undo(tmp_path / "linked")
    assert files(tmp_path / "linked") == before
    assert await checkpoints.turns(repo) == ()
