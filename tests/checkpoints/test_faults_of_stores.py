"""A store of checkpoints that others can open, that is not ours, that is read-only or full, and one that grows fast."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_hooks import checkpoints
from agent_hooks.checkpoints import CheckpointError, pruning
from agent_hooks.checkpoints.facts import remembered
from agent_hooks.checkpoints.faults import failure, number_in
from agent_hooks.checkpoints.git import open_worktree
from agent_hooks.checkpoints.growth import UNIT, note_written, written
from agent_hooks.checkpoints.marks import read_marks
from agent_hooks.turn_notes import store_of, stores_directory
from running import Command
from support import PATIENCE
from working import Agent, repository, undo

pytestmark = pytest.mark.anyio
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
NO_CHECKPOINT = "no checkpoint, so `agent-hooks undo` will not know this turn: "
NO_END = "no checkpoint at the end of the turn, so `agent-hooks undo` takes later edits for those of the agent: "


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository."""
    return repository(project)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put the agent home on a file system of its own, with 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root may mount a file system")
    monkeypatch.setenv("AGENT_HOME", str(place / "home"))
    yield place
    subprocess.run(["umount", str(place)], check=True)


def opened_to_read(store: Path) -> str:
    """Let other users read the store; return the remedy that is expected."""
    store.chmod(0o755)
    return f"other users can read the checkpoints in {store}; to mend it: chmod -R go-rwx {store}"


def opened_to_write(store: Path) -> str:
    """Let a group write to the store."""
    store.chmod(0o770)
    return f"other users can change the checkpoints in {store}; to mend it: chmod -R go-rwx {store}"


def stores_opened(store: Path) -> str:
    """Let everybody put stores beside it."""
    store.parent.chmod(0o777)
    return f"every user can write to {store.parent}; to mend it: chmod go-w {store.parent}"


def given_away(store: Path) -> str:
    """Give the store to another user."""
    os.chown(store, pwd.getpwnam("nobody").pw_uid, -1)
    me = pwd.getpwuid(os.geteuid()).pw_name
    return f"{store} belongs to nobody; if it is yours: sudo chown -R {me} {store}"


@pytest.mark.parametrize(
    "fault", [opened_to_read, opened_to_write, stores_opened, pytest.param(given_away, marks=only_root)]
)
async def test_a_store_that_is_not_ours_alone_is_not_used(repo: Path, fault: Callable[[Path], str]) -> None:
    """The person hears of the remedy once; after it, the turns before can be taken back."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    store = Path(store_of(str(repo)))
    remedy = fault(store)
    before = sorted(str(path) for path in store.rglob("*"))
    await agent.turn("two", "echo 2 > untracked", "echo 2 > made")
    await agent.turn("three", "echo 3 > untracked")
    assert agent.warnings == [NO_CHECKPOINT + remedy]
    assert sorted(str(path) for path in store.rglob("*")) == before
    assert (repo / "untracked").read_text() == "3\n"
    with pytest.raises(CheckpointError) as refused:
        await undo(repo)
    assert str(refused.value) == remedy
    store.parent.chmod(0o700)
    store.chmod(0o700)
    os.chown(store, os.geteuid(), -1)
    plan = await checkpoints.plan_undo(repo)
    assert [turn.work.prompt for turn in plan.turns] == ["one"]


@only_root
async def test_git_options_in_a_store_count_only_if_this_user_wrote_them(repo: Path) -> None:
    """The facts of a repository become options of git, and those could start a program."""
    await Agent(repo).turn("one", "echo 1 > untracked")
    facts = Path(store_of(str(repo)), "facts")
    assert remembered(str(repo)) is not None
    os.chown(facts, pwd.getpwnam("nobody").pw_uid, -1)
    assert remembered(str(repo)) is None
    os.chown(facts, 0, -1)
    assert remembered(str(repo)) is not None
    facts.parent.chmod(0o770)
    assert remembered(str(repo)) is None


async def test_a_full_disk_is_named_with_its_remedy_and_loses_no_turn(repo: Path, disk: Path) -> None:
    """The person hears of it once; with space again, the turns before can be taken back."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    ballast = disk / "ballast"
    subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=4096"], capture_output=True)
    assert shutil.disk_usage(disk).free == 0
    await agent.turn("two", "head -c 100000 /dev/urandom > made")
    await agent.turn("three", "echo 3 > untracked")
    store = store_of(str(repo))
    [warning] = agent.warnings
    assert warning.startswith(f"{NO_CHECKPOINT}{store}: the checkpoints cannot be used: ")
    assert warning.endswith("; the disk is full: free some space there")
    with pytest.raises(CheckpointError, match="the disk is full: free some space there"):
        await undo(repo)
    assert (repo / "untracked").read_text() == "3\n"
    ballast.unlink()
    await undo(repo)
    assert (repo / "untracked").read_text() == "never added\n"


async def test_a_read_only_disk_is_named_with_its_remedy(repo: Path, disk: Path) -> None:
    """Nothing in the store changes, and the call goes on."""
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > untracked")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    await agent.turn("two", "echo 2 > untracked")
    store = store_of(str(repo))
    remedy = "mount that file system writable, or set AGENT_HOME to a directory that can be written"
    assert agent.warnings == [
        f"{NO_CHECKPOINT}{store}: the checkpoints cannot be used: Read-only file system; {remedy}"
    ]
    with pytest.raises(CheckpointError, match=remedy):
        await undo(repo)
    assert (repo / "untracked").read_text() == "2\n"


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root writes to every directory")
@pytest.mark.parametrize(("place", "first", "text"), [("", NO_CHECKPOINT, "never added\n"), ("objects", NO_END, "1\n")])
@pytest.mark.slow
def test_a_store_without_the_right_to_write_is_named_by_a_run_without_a_person(
    command: Command, repo: Path, place: str, first: str, text: str
) -> None:
    """It is a warning on stderr, once for all turns of the session, and undo gives the same remedy.

    A turn needs objects only when files have changed, so without the right to add some, the first one fails at its end.
    """
    command("run", "@bash echo 1 > untracked")
    store = Path(store_of(str(repo)))
    for path in [*(store / place).rglob("*"), store / place]:
        path.chmod(path.stat().st_mode & ~0o222)
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        line = [*prefix, *command.line(*args)]
        return subprocess.run(
            line, cwd=repo, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )

    done = run("run", "@bash echo 2 > untracked\n---\n@bash echo 3 > untracked")
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "no checkpoint" in line]
    assert len(said) == 1
    assert said[0].startswith(f"warning: {first}{store}: the checkpoints cannot be used: ")
    mend = f"to mend it: chmod -R u+rwX {store}"
    assert mend in done.stderr
    assert (repo / "untracked").read_text() == "3\n"
    refused = run("undo", "--yes")
    assert (refused.returncode, mend in refused.stderr) == (1, True)
    assert (repo / "untracked").read_text() == "3\n"
    subprocess.run(["chmod", "-R", "u+rwX", str(store)], check=True)
    assert "took back 1 turn" in run("undo", "--yes").stdout
    assert (repo / "untracked").read_text() == text
    kept = [each.read_text() for each in repo.glob("untracked.edited-before-undo-*")]
    assert kept == (["3\n"] if first == NO_CHECKPOINT else [])


def test_the_words_of_git_and_of_the_system_have_a_remedy_each(tmp_path: Path) -> None:
    """An unknown error of git names a way on; an unreadable file of the working tree is no fault of the store."""
    store = tmp_path / "home" / "checkpoints" / "x"
    assert "mv" in failure(str(store), number_in(str(store), 128, "fatal: a bad day"), "git failed: fatal: a bad day")
    assert number_in(str(store), 128, 'error: open("secret"): Permission denied') is None
    denied = number_in(str(store), 128, f"fatal: Unable to create '{store}/index.lock': Permission denied")
    assert failure(str(store), denied, "d").endswith(f"to mend it: chmod u+rwx {tmp_path}")
    limit = number_in(str(store), -25, "")
    assert failure(str(store), limit, "d").endswith("raise the limit on the size of a file (ulimit -f)")
    (tmp_path / "home").touch()
    assert failure(str(store), 20, "d").endswith(f"move {tmp_path / 'home'} away, in whose place a directory has to be")


# ---- growth ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_busy_day_stays_near_the_limit(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stores were pruned today, and still the oldest turns go as soon as they have grown above the limit."""
    agent = Agent(repo)
    await agent.turn("0", "echo 0 > made")
    store = Path(store_of(str(repo)))
    assert (store / "pruned").exists()
    monkeypatch.setattr(pruning, "BYTES", 2 << 20)
    monkeypatch.setattr(pruning, "GROWTH", 1 << 20)
    monkeypatch.setattr(pruning, "start_removal", pruning.remove_in_background)
    sizes = []
    for number in range(1, 7):
        await agent.turn(str(number), f"head -c {700 * 1024} /dev/urandom > made")
        sizes.append(sum(path.lstat().st_size for path in store.rglob("*") if path.is_file()))
    # The limit, what may come before the next look, and the turn in which the look is due.
    assert max(sizes) < (2 + 1 + 1) << 20
    assert sum(sizes[one] < sizes[one - 1] for one in range(1, 6)) > 0
    worktree = await open_worktree(repo)
    assert "1" not in [mark.work.prompt for mark in read_marks(worktree)]
    made = (repo / "made").read_bytes()
    await undo(repo)
    assert (repo / "made").read_bytes() != made


async def test_the_sizes_of_the_stores_are_looked_at_only_after_some_growth(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small turn reads one number; the look begins the count anew, also if nothing has to go."""
    looks: list[int] = []
    size_of_all = pruning._size_of_all

    def look() -> int:
        looks.append(1)
        return size_of_all()

    monkeypatch.setattr(pruning, "_size_of_all", look)
    monkeypatch.setattr(pruning, "start_removal", pruning.remove_in_background)
    agent = Agent(repo)
    await agent.turn("one", "echo 1 > made")
    looks.clear()
    await agent.turn("two", "echo 2 > made")
    assert looks == []
    assert 0 < written() <= 4 * UNIT
    note_written(pruning.GROWTH)
    await agent.turn("three", "echo 3 > made")
    assert (looks, written()) == ([1], 0)
    Path(stores_directory(), "written").mkdir()
    await agent.turn("four", "echo 4 > made")
    assert agent.warnings == []
