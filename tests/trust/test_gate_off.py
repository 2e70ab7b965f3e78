"""An agent that wants a gate off: the last approved set goes on judging."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_hooks.trust.manifest import MOST_FILES
from agent_hooks.trust.policy import Trust
from support import PATIENCE
from trust.approving import agent_file, approve, git, judged_names, state

GATE = ".agent/hooks/gate.py"


def remove_file(project: Path) -> None:
    """Remove the gate."""
    (project / GATE).unlink()


def remove_hooks(project: Path) -> None:
    """Remove all hooks."""
    shutil.rmtree(project / ".agent" / "hooks")


def remove_all(project: Path) -> None:
    """Remove `.agent`."""
    shutil.rmtree(project / ".agent")


def edit(project: Path) -> None:
    """Empty the gate."""
    (project / GATE).write_text("def register(api): pass\n")


def add(project: Path) -> None:
    """Add a file that would load first."""
    agent_file(project, "hooks/a.py", "raise SystemExit")


def fifo(project: Path) -> None:
    """Put a FIFO in the place of the gate."""
    remove_file(project)
    os.mkfifo(project / GATE)


def fifo_settings(project: Path) -> None:
    """Put a FIFO in the place of the settings, and remove the gate."""
    remove_file(project)
    os.mkfifo(project / ".agent" / "settings.json")


def device(project: Path) -> None:
    """Put a link to a device that never ends in the place of the gate."""
    remove_file(project)
    (project / GATE).symlink_to("/dev/zero")


def loop(project: Path) -> None:
    """Put a loop of links in the place of the hooks."""
    remove_hooks(project)
    (project / ".agent" / "hooks").symlink_to("hooks")


def too_many(project: Path) -> None:
    """Make the set larger than any that can be approved."""
    for number in range(MOST_FILES + 1):
        agent_file(project, f"hooks/{number}.txt", "")


def too_large(project: Path) -> None:
    """Add a file of 100 MB."""
    with agent_file(project, "hooks/data.bin").open("wb") as file:
        file.truncate(100 << 20)


def home_link(project: Path) -> None:
    """Let `.agent` be the agent home, which is no project."""
    remove_all(project)
    (Path.home() / ".agent").mkdir(exist_ok=True)
    (project / ".agent").symlink_to(Path.home() / ".agent")


def dangling(project: Path) -> None:
    """Let `.agent` lead nowhere."""
    remove_all(project)
    (project / ".agent").symlink_to("nowhere")


def a_file(project: Path) -> None:
    """Put a file in the place of `.agent`."""
    remove_all(project)
    (project / ".agent").write_text("")


def given_away(project: Path) -> None:
    """Give `.agent` to another user."""
    os.chown(project / ".agent", 54_321, 54_321)
    remove_file(project)


CHANGES = [
    *(remove_file, remove_hooks, remove_all, edit, add, fifo, device, loop, too_many, too_large),
    *(fifo_settings, home_link, dangling, a_file, given_away),
]


@pytest.mark.parametrize("in_git", [False, True], ids=["directory", "repository"])
@pytest.mark.parametrize("change", CHANGES)
def test_after_any_change_the_last_approved_set_judges_from_its_kept_bytes(
    project: Path, change: Callable[[Path], None], in_git: bool
) -> None:
    """The gate counts with the bytes that were approved, and the state names the change with the remedy."""
    if in_git:
        git("init", cwd=project)
    (project / "src").mkdir()
    source = agent_file(project).read_bytes()
    approve(project)
    change(project)
    found = state(project / "src")
    assert (found.state, judged_names(found), found.blocks) == ("changed", {GATE}, False)
    assert found.files is not None
    kept = found.files[str(project / GATE)]
    assert kept.data == source == Path(kept.place).read_bytes()
    assert not kept.place.startswith(str(project))
    assert found.message is not None
    assert found.message.endswith("read and approve: agent-hooks trust")


def inner_repository(project: Path) -> None:
    """Begin a repository in the directory that the agent works in."""
    git("init", cwd=project / "src")


def new_repository(project: Path) -> None:
    """Begin a repository in the project."""
    git("init", cwd=project)


def no_repository(project: Path) -> None:
    """Remove the repository."""
    shutil.rmtree(project / ".git", ignore_errors=True)


def another_repository(project: Path) -> None:
    """Let `.git` name another repository whose approved set has no gate, as one of its worktrees."""
    no_repository(project)
    other = project.parent / "other"
    other.mkdir()
    git("init", cwd=other)
    agent_file(other, "hooks/harmless.py")
    approve(other)
    entry = other / ".git" / "worktrees" / "x"
    entry.mkdir(parents=True)
    (entry / "gitdir").write_text(f"{project / '.git'}\n")
    (entry / "commondir").write_text("../..\n")
    (project / ".git").write_text(f"gitdir: {entry}\n")


@pytest.mark.parametrize("in_git", [False, True], ids=["directory", "repository"])
@pytest.mark.parametrize("change", [inner_repository, new_repository, no_repository, another_repository])
def test_no_change_of_the_repositories_gives_a_project_other_approvals(
    project: Path, change: Callable[[Path], None], in_git: bool
) -> None:
    """The unchanged gate stays approved, and the removed one judges."""
    if in_git:
        git("init", cwd=project)
    (project / "src").mkdir()
    agent_file(project)
    approve(project)
    change(project)
    assert state(project / "src").state == "approved"
    remove_all(project)
    assert judged_names(state(project / "src")) == {GATE}


def test_a_worktree_whose_link_to_its_repository_was_removed_is_still_judged(project: Path) -> None:
    """The repository still names the worktree, which shares its approval."""
    repository, worktree = project / "repository", project / "worktree"
    repository.mkdir()
    agent_file(repository)
    git("init", cwd=repository)
    git("add", "-A", cwd=repository)
    git("commit", "-m", "x", cwd=repository)
    git("worktree", "add", str(worktree), cwd=repository)
    approve(repository)
    assert state(worktree).state == "approved"
    (worktree / ".git").unlink()
    assert state(worktree).state == "approved"
    remove_all(worktree)
    assert judged_names(state(worktree)) == {GATE}


@pytest.mark.parametrize("damage", ["removed", "altered", "emptied", "FIFO"])
def test_without_the_kept_bytes_calls_are_denied(project: Path, damage: str) -> None:
    """Of the set that should judge, nothing is known then."""
    agent_file(project)
    digest = approve(project)
    kept = Path(Trust().agent_home, "trust", "sets", digest, "in", GATE)
    assert kept.stat().st_mode & 0o077 == 0
    match damage:
        case "removed":
            shutil.rmtree(kept.parents[3])
        case "altered":
            kept.write_text("def register(api): pass\n")
        case "emptied":
            kept.write_text("")
        case _:
            kept.unlink()
            os.mkfifo(kept)
    assert state(project).state == "approved"
    edit(project)
    found = state(project)
    assert (found.state, found.files, found.blocks) == ("lost", None, True)
    assert "the approved ones are gone; every tool call is blocked" in str(found.message)
    approve(project)
    assert state(project).state == "approved"


def test_the_removal_of_all_hooks_can_be_approved(project: Path) -> None:
    """The person who removed them says so, and nothing judges any more."""
    agent_file(project)
    approve(project)
    remove_all(project)
    approve(project)
    found = state(project)
    assert (found.state, found.files, found.message) == ("approved", {}, None)


BLOCKING = """
from agent_hooks import Block

def register(api):
    @api.on("tool_call", tool="bash")
    def gate(event, ctx):
        return Block("stopped by the gate")
"""


@pytest.mark.parametrize("change", [edit, remove_all, fifo, too_many, inner_repository])
def test_the_real_command_is_stopped_by_a_gate_that_was_switched_off(
    project: Path, change: Callable[[Path], None]
) -> None:
    """Also in a subdirectory, where a repository has begun."""
    (project / "src").mkdir()
    agent_file(project, text=BLOCKING)
    approve(project)
    change(project)
    line = [sys.executable, "-m", "agent_hooks", "run", "--no-session", "@bash touch done"]
    done = subprocess.run(
        line, cwd=project / "src", capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
    )
    assert "stopped by the gate" in done.stdout
    assert not (project / "src" / "done").exists()
