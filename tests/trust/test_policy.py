"""Approval of any content, rights of files, and the cost of a decision."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_hooks.trees import SourceTree
from agent_hooks.trust.manifest import TrustError
from agent_hooks.trust.policy import Trust
from agent_hooks.trust.standing import Standing
from support import unmeasured
from trust.approving import agent_file, approve, git, judged_names, state

SOMEBODY = 54_321
"""A user of the machine that is neither root nor the one that runs the tests."""


def always(project: Path) -> None:
    """Approve any content of a project."""
    store = Trust().store()
    store.set_always(store.key(str(project)), str(project), always=True)


def test_an_approval_that_a_newer_one_replaces_was_not_taken_back(project: Path, home: Path) -> None:
    """A followed save replaces the one before; a project without any approval has lost it."""
    agent_file(project)
    approve(project, by="follow")
    standing = Standing(Trust(), Trust().sources(project))
    assert standing.withdrawn() is None
    agent_file(project, text="def register(api): pass\n")
    approve(project, by="follow")
    assert standing.withdrawn() == ""
    assert standing.withdrawn() is None
    store = Trust().store()
    store.remove(store.key(str(project)))
    # Until it is answered by a load.
    for _ in range(2):
        assert standing.withdrawn() == f"the approval of {project} was taken back, so its hooks end"


@pytest.mark.parametrize("name", [".", "trust.json", "trust"])
@pytest.mark.parametrize("rights", ["owner", "mode"])
def test_a_store_that_another_user_can_change_is_refused(project: Path, home: Path, name: str, rights: str) -> None:
    """The error has the command that mends it."""
    agent_file(project)
    approve(project)
    path = home / ".agent" / name
    if rights == "owner":
        os.chown(path, SOMEBODY, SOMEBODY)
    else:
        path.chmod(path.stat().st_mode | 0o002)
    with pytest.raises(TrustError, match="sudo chown -R" if rights == "owner" else "chmod go-w"):
        Trust().sources(project)
    with pytest.raises(TrustError):
        approve(project)


@pytest.mark.parametrize(
    "name", [".agent", ".agent/hooks", ".agent/hooks/pkg", ".agent/hooks/gate.py", ".agent/transformers"]
)
def test_of_a_project_of_which_any_content_counts_another_user_can_change_nothing(project: Path, name: str) -> None:
    """Approved contents need no such check: a change of theirs is not approved."""
    agent_file(project)
    agent_file(project, "hooks/pkg/__init__.py", "")
    (project / ".agent" / "transformers").mkdir()
    git("init", cwd=project)
    approve(project)
    (project / name).chmod(0o777)
    assert state(project).state == "approved"
    always(project)
    with pytest.raises(TrustError, match=r"every user can write to .*; to mend it: chmod go-w"):
        Trust().sources(project)
    (project / name).chmod(0o755)
    assert state(project).state == "always"
    # Files of root are fine, and those of another user are not.
    os.chown(project / name, SOMEBODY, SOMEBODY)
    with pytest.raises(TrustError, match="belongs to user 54321"):
        Trust().sources(project)


def test_of_a_project_that_is_always_approved_any_content_counts(project: Path) -> None:
    """Also in its worktrees, and no longer once the person has taken it back."""
    agent_file(project)
    git("init", cwd=project)
    git("add", "-A", cwd=project)
    git("commit", "-m", "x", cwd=project)
    git("worktree", "add", str(project.parent / "linked"), cwd=project)
    always(project)
    for each in (project, project.parent / "linked"):
        agent_file(each, "hooks/new.py")
        found = state(each)
        assert (found.state, found.digest) == ("always", found.found.digest)
        assert judged_names(found) == {".agent/hooks/gate.py", ".agent/hooks/new.py"}
    store = Trust().store()
    store.set_always(store.key(str(project)), str(project), always=False)
    assert state(project).state == "new"


def test_always_does_not_go_over_to_another_repository_at_the_path_of_a_worktree(project: Path) -> None:
    """Approved contents still judge there."""
    linked = project.parent / "linked"
    agent_file(project)
    git("init", cwd=project)
    git("add", "-A", cwd=project)
    git("commit", "-m", "x", cwd=project)
    git("worktree", "add", str(linked), cwd=project)
    store = Trust().store()
    store.set_always(store.key(str(linked)), str(linked), always=True)
    assert state(linked).state == "always"
    shutil.rmtree(linked)
    agent_file(linked, text="of a stranger")
    git("init", cwd=linked)
    found = state(linked)
    assert (found.state, found.files, found.blocks) == ("lost", None, True)


def test_a_set_that_cannot_be_read_is_denied_also_where_any_content_counts(project: Path) -> None:
    """Otherwise one large file would switch all gates off."""
    with agent_file(project).open("wb") as file:
        file.truncate(100 << 20)
    always(project)
    assert (state(project).state, state(project).blocks) == ("lost", True)


def test_a_project_without_files_waits_for_nothing(project: Path) -> None:
    """An empty `.agent`, or one with sessions only, as every run leaves it."""
    agent_file(project, "sessions/x.jsonl")
    found = state(project)
    assert (found.state, found.message, found.blocks) == ("empty", None, False)
    assert Trust(required=True).sources(project).projects[0].blocks is False


def test_calls_are_denied_where_approval_is_required(project: Path, home: Path) -> None:
    """By the program, or by the person's settings; the project's own settings do not count."""
    agent_file(project)
    agent_file(project, "settings.json", '{"trust": {"required": false}}')
    assert state(project).blocks is False
    assert Trust(required=True).sources(project).projects[0].blocks
    agent_file(home, "settings.json", '{"trust": {"required": true}}')
    assert state(project).blocks


def test_only_approved_trees_count_outermost_first(project: Path) -> None:
    """The agent home is the first; a project that waits is none of them."""
    git("init", cwd=project)
    for each in (project, project / "a", project / "a" / "b"):
        agent_file(each)
    approve(project)
    approve(project / "a" / "b")
    home, *trees = Trust().trees(project / "a" / "b")
    assert home == SourceTree(Trust().agent_home)
    assert [tree.directory for tree in trees] == [str(project / ".agent"), str(project / "a" / "b" / ".agent")]
    assert trees[0].names(str(project / ".agent" / "hooks")) == ["gate.py"]
    with pytest.raises(FileNotFoundError):
        trees[0].names(str(project / ".agent" / "transformers"))


def test_an_event_pays_for_no_module_that_it_does_not_need() -> None:
    """OpenSSL alone would take longer than the whole decision."""
    program = "import sys, agent_hooks.trust.policy as p; p.Trust().sources('.'); print(*sys.modules)"
    command = [sys.executable, "-c", program]
    modules = subprocess.check_output(command, text=True, timeout=60, env=unmeasured()).split()
    assert not {"hashlib", "_hashlib", "json", "shutil", "secrets", "random", "tempfile", "pathlib"} & set(modules)


def test_the_sentence_about_files_that_wait_names_some_of_them(project: Path) -> None:
    """A set that was never approved, and the files that have changed since the last yes."""
    agent_file(project)
    agent_file(project, f"hooks/{'x' * 200}.py", "")
    message = Trust().sources(project).projects[0].message or ""
    assert "2 files not used, because no person has approved them: .agent/hooks/gate.py, .agent/hooks/xxx" in message
    assert "x" * 80 not in message
    approve(project)
    agent_file(project, "settings.json", "{}")
    (project / ".agent" / "hooks" / f"{'x' * 200}.py").unlink()
    message = Trust().sources(project).projects[0].message or ""
    assert "its hooks or settings were changed (.agent/hooks/xxx" in message
    assert "…, .agent/settings.json); until the change is approved" in message
    assert "gate.py" not in message
