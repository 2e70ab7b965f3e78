"""The hooks that exist around a directory, and the stashes that would move them away."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_hooks.pipeline import present
from agent_hooks.pipeline.guarding import guarded_call
from agent_hooks.pipeline.machine import RealMachine
from agent_hooks.pipeline.present import control_files, stash_moves


def git(project: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=project,
        env=environment,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def hook(project: Path) -> Path:
    """Give a hook in a git working tree, which git does not know."""
    git(project, "init", "-q")
    path = project / ".agent" / "hooks" / "gate.py"
    path.parent.mkdir(parents=True)
    path.write_text("def register(api): pass\n")
    return path


def test_the_hooks_of_the_place_and_of_the_person_are_found(hook: Path, project: Path, home: Path) -> None:
    """The search starts in any directory of the project."""
    own = home / ".agent" / "settings.json"
    own.parent.mkdir()
    own.write_text("{}")
    (project / "src").mkdir()
    assert set(control_files(str(project / "src"))) == {str(hook), str(own)}


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_a_stash_moves_new_and_changed_hooks(hook: Path, project: Path, version: str) -> None:
    """Only `-u` takes a file that git does not know; a committed one that is unchanged stays in its place."""
    assert stash_moves(str(project)) == (False, True)
    git(project, "add", ".agent")
    git(project, "commit", "-qm", "x")
    if version == "3":
        git(project, "add", "-N", ".agent")
    git(project, "update-index", "--index-version", version)
    unreadable = version == "4"
    assert stash_moves(str(project)) == (False, unreadable)
    hook.write_text("def register(api): ...  # longer than before\n")
    assert stash_moves(str(project)) == (not unreadable, unreadable)


def test_without_hooks_or_git_a_stash_moves_nothing(project: Path) -> None:
    """A project without hooks has none to lose."""
    assert stash_moves(str(project)) == (False, False)


@pytest.mark.parametrize("index", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\xff\xff", b"x" * 100])
def test_a_broken_index_counts_as_one_that_knows_no_hooks(hook: Path, project: Path, index: bytes) -> None:
    """The guard then stops a stash of all files."""
    (project / ".git" / "index").write_bytes(index)
    assert stash_moves(str(project)) == (False, True)


def test_the_facts_are_found_for_the_commands_that_need_them(hook: Path, project: Path) -> None:
    """Other commands do not pay for them."""
    assert guarded_call("bash", {"command": "find . -name x"}, str(project)).present == (str(hook),)
    assert guarded_call("bash", {"command": "git stash -u"}, str(project)).stash == (False, True)
    plain = guarded_call("bash", {"command": "ls"}, str(project))
    assert (plain.present, plain.stash, plain.process) == ((), (False, False), os.getpid())


def test_other_files_of_git_do_not_count(hook: Path, project: Path) -> None:
    """Hooks and settings that git knows, and that are unchanged, stay in their place."""
    (project / "other.txt").write_text("x")
    (project / ".agent" / "settings.json").write_text("{}")
    git(project, "add", ".")
    git(project, "commit", "-qm", "x")
    assert stash_moves(str(project)) == (False, False)


def test_a_large_index_of_git_is_not_read(hook: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a stash of new files may move the hooks."""
    git(project, "add", ".")
    monkeypatch.setattr(present, "_LARGEST", 10)
    assert stash_moves(str(project)) == (False, True)


def test_a_file_that_vanishes_meanwhile_has_changed(tmp_path: Path) -> None:
    """It has neither the time nor the size that git noted."""
    assert present._state(str(tmp_path / "gone")) == (0, 0)


def test_an_index_of_another_format_is_not_read(hook: Path, project: Path) -> None:
    """Its entries might stand elsewhere, so a stash may move any hook."""
    git(project, "add", ".agent")
    git(project, "commit", "-qm", "x")
    assert stash_moves(str(project)) == (False, False)
    index = project / ".git" / "index"
    index.write_bytes(b"ELSE" + index.read_bytes()[4:])
    assert stash_moves(str(project)) == (False, True)


def test_bytecode_is_no_hook(hook: Path, project: Path, home: Path) -> None:
    """Python writes it beside a hook."""
    cached = hook.parent / "__pycache__" / "gate.pyc"
    cached.parent.mkdir()
    cached.write_bytes(b"")
    assert control_files(str(project)) == (str(hook),)


def test_a_guard_may_ask_whether_anything_is_there(tmp_path: Path) -> None:
    """A link counts, also one that leads nowhere; an empty directory does not."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    machine = RealMachine(str(tmp_path), str(tmp_path))
    found = [machine.exists(str(tmp_path / name)) for name in ("file", "link", ".", "empty", "absent")]
    assert found == [True, True, True, False, False]
