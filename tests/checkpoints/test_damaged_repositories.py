"""Turns that damage the repository, or meet a damaged one: the files come back all the same."""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

import pytest

from agent_hooks import checkpoints
from agent_hooks.checkpoints import git as repositories
from agent_hooks.checkpoints.git import open_worktree
from agent_hooks.turn_notes import store_of
from working import Agent, files, git, repository, undo

# Each of these starts many processes.
pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the agent a home directory of its own."""
    home = tmp_path / "the-home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository with a tracked, a changed, an untracked and an ignored file."""
    return repository(project)


DAMAGES = {
    "index": "echo garbage > .git/index",
    "HEAD": ": > .git/HEAD",
    "config": "echo '[broken' >> .git/config",
    "bare": "git config core.bare true",
    "refs": "rm -r .git/refs",
    "worktree elsewhere": "git config core.worktree /tmp",
    "worktree gone": "git config core.worktree /nonexistent",
    "version": "git config core.repositoryformatversion 9",
    "file mode": "git config core.filemode maybe",
    "home": "echo '[broken' > ~/.gitconfig",
    "another hash": "rm -rf .git; git init -q --object-format=sha256",
    "linked": 'git worktree add -q ../linked -b w1; GIT_DIR="$(ls -d $PWD/.git/worktrees/*)" git init -q',
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_undo_works_whatever_a_turn_did_to_the_repository(repo: Path, damage: str) -> None:
    """All files come back, and the next turn is saved too."""
    before = files(repo)
    agent = Agent(repo)
    await agent.turn("break", f"rm -r src; echo broken > tracked; echo new > new; {damage}")
    await undo(repo)
    assert files(repo) == before
    await agent.turn("again", "rm untracked")
    await undo(repo)
    assert (files(repo), agent.warnings) == (before, [])


async def test_ignored_files_stay_when_the_settings_cannot_be_read_any_more(repo: Path, home: Path) -> None:
    """The file of ignored paths that the user's configuration names still applies."""
    (home / "ignore").write_text("private\n")
    (home / ".gitconfig").write_text(f"[core]\n\texcludesFile = {home}/ignore\n")
    (repo / "private").write_text("mine\n")
    await Agent(repo).turn("break", "echo broken > tracked; echo '[broken' > ~/.gitconfig")
    done = await undo(repo)
    assert (done.written, done.deleted, (repo / "private").read_text()) == (("tracked",), (), "mine\n")


async def test_files_come_back_into_a_repository_that_a_turn_made_around_them(repo: Path) -> None:
    """An undo of that undo takes them away again."""
    before = files(repo)
    await Agent(repo).turn("init", "git init -q src; rm src/a.py")
    done = await undo(repo)
    assert (files(repo), done.written) == (before, ("src/a.py",))
    plan = await checkpoints.plan_redo(repo)
    assert plan is not None
    await checkpoints.take_back(repo, plan)
    assert not (repo / "src" / "a.py").exists()


# ---- borrowed objects ------------------------------------------------------------------------------------------------


def forge(top: Path, text: str) -> None:
    """Put an object into the repository that has the name of this text, and other bytes."""
    name = subprocess.run(
        ["git", "hash-object", "--stdin"], cwd=top, input=text.encode(), capture_output=True, check=True
    ).stdout.decode()
    path = top / ".git" / "objects" / name[:2] / name[2:].strip()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(b"blob 5\0EVIL\n"))


async def test_undo_gives_back_the_bytes_that_were_there(repo: Path) -> None:
    """An object of the repository whose content has another name is not taken for that file."""
    forge(repo, "never added\n")
    await Agent(repo).turn("break", "rm untracked")
    done = await undo(repo)
    assert (done.written, (repo / "untracked").read_text()) == (("untracked",), "never added\n")


async def test_no_file_is_replaced_by_bytes_that_were_not_there(repo: Path) -> None:
    """The store is damaged in a way that git does not notice.  The file is named."""
    await Agent(repo).turn("break", "echo broken > untracked")
    store = Path(store_of(str(repo)))
    digest = (
        subprocess.run(
            ["git", "hash-object", "--stdin"], input=b"never added\n", cwd=repo, capture_output=True, check=True
        )
        .stdout.decode()
        .strip()
    )
    damaged = store / "objects" / digest[:2] / digest[2:]
    damaged.parent.mkdir(exist_ok=True)
    for path in (store / "objects" / "pack").iterdir():
        path.rename(store / path.name)
    with next(store.glob("pack-*.pack")).open("rb") as pack:
        subprocess.run(["git", f"--git-dir={store}", "unpack-objects", "-q"], stdin=pack, check=True)
    damaged.unlink(missing_ok=True)
    damaged.write_bytes(zlib.compress(b"blob 5\0EVIL\n"))
    done = await undo(repo)
    assert (repo / "untracked").read_text() == "broken\n"
    assert [each.path for each in done.failed] == ["untracked"]
    assert "other bytes than were saved" in done.failed[0].reason


async def test_a_first_checkpoint_keeps_each_file_once(repo: Path) -> None:
    """The store is about as large as the files."""
    (repo / "data").mkdir()
    for number in range(50):
        (repo / "data" / str(number)).write_bytes(os.urandom(20_000))
    await Agent(repo).turn("one", "echo 1 > new")
    store = Path(store_of(str(repo)))
    assert sum(path.stat().st_size for path in store.rglob("*")) < 1_500_000


# ---- odd files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".gitignore", "src/.gitattributes", ".git/info/exclude"])
async def test_a_pipe_that_git_would_read_does_not_hold_up_a_checkpoint(repo: Path, name: str) -> None:
    """It is named."""
    (repo / name).unlink(missing_ok=True)
    os.mkfifo(repo / name)
    agent = Agent(repo)
    await agent.turn("break", "echo broken > tracked")
    await undo(repo)
    assert (repo / "tracked").read_text() == "1\n2\n3\nmine, not committed\n"
    assert agent.warnings == [f"not in the checkpoints: {name}: neither a file nor a symlink, so git does not read it"]


@pytest.mark.parametrize("name", [".git/HEAD", ".git/config", ".git/index", ".git"])
async def test_a_repository_that_blocks_git_does_not_hold_up_a_checkpoint(
    repo: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its store is used without it."""
    monkeypatch.setattr(repositories, "ASKING", 1.0)
    before = files(repo)
    await Agent(repo).turn("one", "true > new; rm new")
    await Agent(repo).turn("break", f"echo broken > tracked; rm -rf {name}; mkfifo {name}")
    await undo(repo)
    assert files(repo) == before


async def test_the_case_of_names_is_what_the_file_system_says(repo: Path) -> None:
    """`core.ignorecase` of the repository says otherwise."""
    git(repo, "config", "core.ignorecase", str(not (await open_worktree(repo)).ignores_case).lower())
    await Agent(repo).turn("one", "echo a > f")
    (repo / "TRACKED").write_text("sibling\n")
    await Agent(repo).turn("two", "rm TRACKED; echo broken > tracked")
    await undo(repo)
    assert (repo / "TRACKED").read_text() == "sibling\n"
    assert (repo / "tracked").read_text() == "1\n2\n3\nmine, not committed\n"


async def test_files_that_git_takes_under_no_name_are_named(repo: Path) -> None:
    """They cannot be saved, so nobody relies on them."""
    (repo / ".GIT").write_text("precious\n")
    (repo / "src" / ".Git").mkdir()
    (repo / "src" / ".Git" / "x").write_text("precious\n")
    (repo / ".gitmodules").symlink_to("tracked")
    agent = Agent(repo)
    await agent.turn("break", "echo broken > tracked")
    assert agent.warnings == [
        f"not in the checkpoints: {name}: not saved: git takes no file of this name"
        for name in (".GIT", ".gitmodules", "src/.Git/x")
    ]


async def test_files_that_a_turn_made_ignored_come_back(repo: Path) -> None:
    """No version is kept as a later edit, and the undo can be taken back."""
    before = files(repo)
    await Agent(repo).turn(
        "ignore", "echo untracked >> .gitignore; echo tracked >> .gitignore; echo x | tee untracked tracked"
    )
    after = files(repo)
    done = await undo(repo)
    assert (files(repo), done.kept) == (before, ())
    plan = await checkpoints.plan_redo(repo)
    assert plan is not None
    await checkpoints.take_back(repo, plan)
    assert files(repo) == after


async def test_repositories_inside_that_a_turn_deleted_are_named(repo: Path) -> None:
    """Their files were not saved."""
    git(repo, "init", "-q", "lib")
    (repo / "lib" / "l").write_text("l\n")
    await Agent(repo).turn("break", "echo broken > tracked; rm -rf lib")
    plan = await checkpoints.plan_undo(repo)
    assert [str(each) for each in plan.left] == [
        "lib/: was a git repository of its own, so its files were not saved, and the turn has removed it"
    ]
