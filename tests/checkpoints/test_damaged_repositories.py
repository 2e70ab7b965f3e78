"""Turns that damage the repository, or meet a damaged one: the files come back all the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from agent_hooks import checkpoints
from agent_hooks.checkpoints import git as repositories
from agent_hooks.checkpoints import keeping, refused
from agent_hooks.checkpoints.git import open_worktree
from agent_hooks.checkpoints.pruning import FINISH
from agent_hooks.checkpoints.removal import remove
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
    forge(inner(repo, "lib"), "never added\n")
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


@pytest.mark.parametrize("name", ["info/alternates", "pack/x.idx"])
async def test_a_pipe_among_the_objects_does_not_hold_up_the_first_checkpoint(repo: Path, name: str) -> None:
    """No object is borrowed from such a repository."""
    (repo / ".git" / "objects" / name).parent.mkdir(exist_ok=True)
    os.mkfifo(repo / ".git" / "objects" / name)
    agent, before = Agent(repo), files(repo)
    await agent.turn("break", "rm -r src")
    await undo(repo)
    assert (files(repo), agent.warnings) == (before, [])


async def test_the_case_of_names_is_what_the_file_system_says(repo: Path) -> None:
    """`core.ignorecase` of the repository says otherwise."""
    git(repo, "config", "core.ignorecase", str(not (await open_worktree(repo)).ignores_case).lower())
    await Agent(repo).turn("one", "echo a > f")
    (repo / "TRACKED").write_text("sibling\n")
    await Agent(repo).turn("two", "rm TRACKED; echo broken > tracked")
    await undo(repo)
    assert (repo / "TRACKED").read_text() == "sibling\n"
    assert (repo / "tracked").read_text() == "1\n2\n3\nmine, not committed\n"


async def test_files_whose_names_git_refuses_come_back(repo: Path) -> None:
    """They are restored with their rights, and an undo of that undo takes them away again."""
    odd = {".GIT": "1\n", "src/.Git/x": "2\n", "src/.Git/a\nb\\": "3\n", "src/.Git/c\r": "c\n", "x@agent-hooks": "4\n"}
    for name, text in odd.items():
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(text)
    (repo / ".GIT").chmod(0o600)
    (repo / ".gitmodules").symlink_to("tracked")
    agent, before = Agent(repo), files(repo)
    await agent.turn("break", "rm -r .GIT .gitmodules src x@agent-hooks")
    assert agent.warnings == []
    done = await undo(repo)
    assert (files(repo), os.readlink(repo / ".gitmodules"), done.left) == (before, "tracked", ())
    assert (repo / ".GIT").stat().st_mode & 0o777 == 0o600
    plan = await checkpoints.plan_redo(repo)
    assert plan is not None
    await checkpoints.take_back(repo, plan)
    assert not {*odd, ".gitmodules"} & {*os.listdir(repo)}


async def test_a_symlink_that_git_refuses_can_become_a_file(repo: Path) -> None:
    """Its two names in the store are one path."""
    (repo / ".gitmodules").symlink_to("tracked")
    await Agent(repo).turn("break", "rm .gitmodules; echo '# nothing' > .gitmodules")
    assert [turn.paths for turn in await checkpoints.turns(repo)] == [(".gitmodules",)]
    await undo(repo)
    assert os.readlink(repo / ".gitmodules") == "tracked"


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


async def test_files_that_an_earlier_turn_made_ignored_come_back(repo: Path) -> None:
    """They stay saved.  What you make ignored is left out."""
    before = files(repo)
    agent = Agent(repo)
    await agent.turn("ignore", "echo '*' >> .gitignore")
    await agent.turn("break", "rm untracked; echo broken > src/a.py")
    await undo(repo, 2)
    assert files(repo) == before
    (repo / ".git" / "info" / "exclude").write_text("untracked\n")
    await agent.turn("again", "rm untracked; echo 2 > tracked")
    assert (await undo(repo)).written == ("tracked",)


@pytest.mark.parametrize("command", [": > .git/info/exclude", "rm .git/info/exclude", ": > ~/.config/git/ignore"])
async def test_ignored_files_stay_when_a_turn_changes_rules_outside_of_the_tree(
    repo: Path, home: Path, command: str
) -> None:
    """They are named.  What the turn has made is deleted."""
    (home / ".config" / "git").mkdir(parents=True)
    rules = home / ".config" / "git" / "ignore" if "~" in command else repo / ".git" / "info" / "exclude"
    rules.write_text("private\n")
    (repo / "private").write_text("mine\n")
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > new")
    await agent.turn("break", f"{command}; echo 2 > made")
    done = await undo(repo)
    assert ((repo / "private").read_text(), done.deleted) == ("mine\n", ("made",))
    assert [each.path for each in done.left] == ["private"]


async def test_many_large_files_are_named(repo: Path) -> None:
    """A command line is too short for their names."""
    large = repo.joinpath(*["n" * 240] * 8)
    large.mkdir(parents=True)
    for number in range(1_200):
        with (large / str(number)).open("wb") as file:
            file.truncate(51 << 20)
    agent = Agent(repo)
    await agent.turn("break", "rm untracked")
    assert len([each for each in agent.warnings if "untracked and large" in each]) == 1_200
    await undo(repo)
    assert (repo / "untracked").read_text() == "never added\n"


def inner(top: Path, name: str) -> Path:
    """Make a repository inside, with a commit, an untracked and an ignored file."""
    git(top, "init", "-q", name)
    (top / name / "l").write_text("l\n")
    (top / name / ".gitignore").write_text("build\n")
    git(top / name, "add", "-A")
    git(top / name, "commit", "-qm", f"one of {name}")
    git(top / name, "pack-refs", "--all")
    (top / name / "wip").write_text("never added\n")
    (top / name / "build").write_text("built\n")
    return top / name


async def test_repositories_inside_that_a_turn_deleted_come_back(repo: Path) -> None:
    """Their commits and untracked files come back too, also of a repository in a repository."""
    lib, deep = inner(repo, "lib"), inner(repo, "lib/deep")
    agent, before = Agent(repo), files(repo)
    await agent.turn("break", "echo broken > tracked; rm -rf lib")
    done = await undo(repo)
    assert files(repo) == {path: text for path, text in before.items() if not path.endswith("build")}
    assert (done.left, done.failed, agent.warnings) == ((), (), [])
    assert git(lib, "log", "--format=%s").strip() == "one of lib"
    assert git(deep, "status", "--porcelain").split() == ["??", "wip"]
    # The next turn starts from there.
    await agent.turn("again", "rm -rf lib/deep")
    await undo(repo)
    assert git(deep, "log", "--format=%s").strip() == "one of lib/deep"


async def test_links_of_a_repository_inside_come_back_as_links(repo: Path, tmp_path: Path) -> None:
    """Nothing behind them is saved."""
    (inner(repo, "lib") / ".git").rename(tmp_path / "private")
    (repo / "lib" / ".git").symlink_to(tmp_path / "private")
    deep = inner(repo, "deep")
    (deep / ".git" / "objects").rename(tmp_path / "objects")
    (deep / ".git" / "objects").symlink_to(tmp_path / "objects")
    agent = Agent(repo)
    await agent.turn("break", "rm -rf lib deep")
    done = await undo(repo)
    assert (done.left, done.failed, agent.warnings) == ((), (), [])
    assert git(repo / "lib", "log", "--format=%s").strip() == "one of lib"
    assert git(deep, "log", "--format=%s").strip() == "one of deep"
    links = {"lib/.git", "deep/.git/objects"}
    assert {path for path in done.written if re.match(r"lib/\.git(/|$)|deep/\.git/objects", path)} == links


async def test_a_checkpoint_that_takes_long_is_finished_in_the_background(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the first one: a repository that was cloned inside may be large."""
    await Agent(repo).turn("one", "echo 1 > new")
    inner(repo, "lib")
    asked: list[tuple[str, ...]] = []

    async def start(worktree: object, *words: str) -> None:
        asked.append(words)

    monkeypatch.setattr(keeping, "start_removal", start)
    monkeypatch.setattr(keeping, "BEFORE_A_CALL", 0.0)
    late = Agent(repo, "late")
    await late.turn("two", "true > new2")
    assert asked == [(FINISH,)]
    assert "took longer than 0 s" in late.warnings[0]
    await remove(str(repo), FINISH)
    assert "lib/wip" in (await (await open_worktree(repo)).git("ls-files")).out.decode()


async def test_a_repository_that_was_made_around_saved_files_comes_back(repo: Path) -> None:
    """git lists the files of such a directory, and not the repository."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > src/b.py")
    inner(repo, "src")
    before = files(repo)
    await agent.turn("break", "rm -rf src; mkdir src; echo 2 > src/a.py")
    done = await undo(repo)
    assert files(repo) == {path: text for path, text in before.items() if not path.endswith("build")}
    assert (done.left, done.failed, agent.warnings) == ((), (), [])
    assert git(repo / "src", "log", "--format=%s").strip() == "one of src"


async def test_a_turn_that_makes_a_repository_around_saved_files_is_taken_back(repo: Path) -> None:
    """Changed and deleted files come back.  The repository stays and is named, also in a restore."""
    agent, before = Agent(repo), files(repo)
    await agent.turn("one", "echo 1 > src/b.py")
    await agent.turn("init", "git init -q src; rm src/a.py; echo 2 > src/b.py")
    first = (await checkpoints.list(repo))[0]
    done = await undo(repo)
    assert files(repo) == {**before, "src/b.py": "1\n"}
    assert [str(each) for each in done.left] == ["src/: is a git repository of its own, which undo does not delete"]
    (repo / "src" / "a.py").write_text("changed\n")
    restored = await checkpoints.restore(repo, first)
    assert (files(repo)["src/a.py"], [each.path for each in restored.left]) == ("a = 1\n", ["src/"])
    assert (repo / "src" / ".git" / "HEAD").exists()


async def test_commits_inside_are_no_change_of_a_turn(repo: Path) -> None:
    """An undo takes back the files and not the commits."""
    lib = inner(repo, "lib")
    agent = Agent(repo)
    await agent.turn("commit", "cd lib; echo 2 > l; git -c user.name=a -c user.email=a@b commit -qam two")
    await agent.turn("look", "cd lib; touch l; git status; git branch other; true > build")
    assert [turn.paths for turn in await checkpoints.turns(repo)] == [("lib/l",)]
    done = await undo(repo)
    assert (done.written, (lib / "l").read_text()) == (("lib/l",), "l\n")
    assert git(lib, "log", "--format=%s").split()[0] == "two"


REPLACED = {
    "by another": "rm -rf lib/.git; git init -q lib",
    "by a file": "rm -rf lib/.git; echo 1 > lib/.git",
    "by a link": "rm -rf lib/.git; ln -s ../.git lib/.git",
}


@pytest.mark.parametrize("command", REPLACED.values(), ids=REPLACED)
async def test_a_repository_inside_that_a_turn_replaced_is_named(repo: Path, command: str) -> None:
    """Its commits are in the checkpoint, and a restore after its removal brings them back."""
    lib = inner(repo, "lib")
    await Agent(repo).turn("replace", f"{command}; rm lib/wip")
    first = (await checkpoints.list(repo))[0]
    done = await undo(repo)
    assert "lib/: is another git repository now" in [str(each) for each in done.left]
    assert (lib / "wip").read_text() == "never added\n"
    if (lib / ".git").is_dir() and not (lib / ".git").is_symlink():
        shutil.rmtree(lib / ".git")
    else:
        (lib / ".git").unlink()
    await checkpoints.restore(repo, first)
    assert git(lib, "log", "--format=%s").strip() == "one of lib"


async def test_the_file_that_names_a_repository_inside_comes_back(repo: Path, tmp_path: Path) -> None:
    """A submodule has such a file."""
    lib = inner(repo, "lib")
    (lib / ".git").rename(tmp_path / "private")
    (lib / ".git").write_text(f"gitdir: {tmp_path}/private\n")
    await Agent(repo).turn("break", "echo broken > lib/.git")
    done = await undo(repo)
    assert (done.written, (lib / ".git").read_text()) == (("lib/.git",), f"gitdir: {tmp_path}/private\n")


async def test_a_repository_that_was_made_again_is_not_replaced(repo: Path) -> None:
    """It is named, and its files come back."""
    lib = inner(repo, "lib")
    await Agent(repo).turn("break", "rm -rf lib")
    git(repo, "init", "-q", "lib")
    head = (lib / ".git" / "HEAD").stat()
    done = await undo(repo)
    assert [str(each) for each in done.left] == ["lib/: is another git repository now"]
    assert (lib / ".git" / "HEAD").stat().st_ino == head.st_ino
    assert (lib / "wip").read_text() == "never added\n"


async def test_a_large_git_directory_inside_is_named_and_left_alone(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other files of the repository come back."""
    monkeypatch.setattr(refused, "_MANY", 5)
    lib = inner(repo, "lib")
    agent = Agent(repo)
    await agent.turn("break", "rm -rf lib")
    reason = "lib/.git/: too large: only the other files of this repository are saved"
    assert agent.warnings == [f"not in the checkpoints: {reason}"]
    done = await undo(repo)
    assert sorted(os.listdir(lib)) == [".gitignore", "l", "wip"]
    assert [each.path for each in done.left] == ["lib/.git/"]
