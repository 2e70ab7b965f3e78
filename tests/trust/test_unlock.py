"""Unlocking: the state, its end, and the edits that were made meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from agent_hooks.errors import AgentHooksError
from agent_hooks.trust.place import find_place
from agent_hooks.trust.unlock import begin, edits, end
from agent_hooks.trust.unlocked import LONGEST, Unlocked, read_state, state_path, unlocked_directories


@pytest.fixture
def hook(project: Path) -> Path:
    path = project / ".agent" / "hooks" / "gate.py"
    path.parent.mkdir(parents=True)
    path.write_text("a\nb\n")
    return path


def unlock(project: Path, seconds: float = 60, *, own: bool = False) -> Unlocked:
    return begin(find_place(str(project)), seconds, own=own)


def put(state: Unlocked, **changes: object) -> None:
    Path(state_path()).write_bytes(msgspec.json.encode(replace(state, **changes)))


def test_hooks_are_unlocked_for_the_time_that_the_person_said(hook: Path, project: Path, home: Path) -> None:
    """The state is a file that only this person can read."""
    assert unlocked_directories() == ()
    unlock(project)
    assert unlocked_directories() == (str(project / ".agent"),)
    assert os.stat(state_path()).st_mode & 0o777 == 0o600
    end()
    assert unlocked_directories() == ()
    unlock(project, own=True)
    assert unlocked_directories() == (str(project / ".agent"), str(home / ".agent"))


@pytest.mark.parametrize(
    "changes",
    [
        {"until": time.time() - 1},
        {"until": time.time() + LONGEST + 3600},
        {"started": time.time() + 3600},
        {"clock": 0.0},
        {"boot": "another"},
        {"version": 2},
    ],
    ids=lambda changes: str(*changes),
)
def test_every_doubt_about_the_time_counts_as_locked(hook: Path, project: Path, changes: dict[str, object]) -> None:
    """A time that is over, too long or in the future; another boot; another version."""
    put(unlock(project), **changes)
    assert unlocked_directories() == ()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff" * 9, b"{}", b"[" * 100_000])
def test_a_state_that_cannot_be_read_counts_as_locked(hook: Path, project: Path, text: bytes) -> None:
    """It may have been truncated, or be no JSON."""
    unlock(project)
    Path(state_path()).write_bytes(text)
    assert unlocked_directories() == ()
    end()
    assert not os.path.exists(state_path())


def test_a_state_that_others_can_write_counts_as_locked(hook: Path, project: Path, tmp_path: Path) -> None:
    """So does a link, a FIFO, and the file of another user."""
    unlock(project)
    path = Path(state_path())
    path.chmod(0o640)
    assert unlocked_directories() == ()
    path.chmod(0o600)
    assert unlocked_directories() != ()
    path.rename(tmp_path / "state")
    path.symlink_to(tmp_path / "state")
    assert unlocked_directories() == ()
    path.unlink()
    os.mkfifo(path, 0o600)
    assert unlocked_directories() == ()
    if os.geteuid() == 0:
        path.unlink()
        (tmp_path / "state").rename(path)
        os.chown(path, 12345, -1)
        assert unlocked_directories() == ()


def test_the_edits_are_told_with_their_diffs(hook: Path, project: Path) -> None:
    """New, changed and removed files count, in any order of saves."""
    gone = hook.parent / "gone.py"
    gone.write_text("x\n")
    state = unlock(project)
    assert edits(state) == []
    hook.write_text("a\nc\n")
    (project / ".agent" / "settings.json").write_text("{}\n")
    (hook.parent / "data.bin").write_bytes(b"\xff\0" * 10)
    gone.unlink()
    found = {os.path.basename(each.path): each.diff for each in edits(state)}
    assert found.keys() == {"gate.py", "settings.json", "gone.py", "data.bin"}
    assert "-b\n+c" in found["gate.py"]
    assert "+{}" in found["settings.json"]
    assert found["gone.py"].endswith("-x")


def test_a_second_unlock_keeps_the_first_contents(hook: Path, project: Path) -> None:
    """The final set shows all edits since the first."""
    unlock(project)
    hook.write_text("changed\n")
    state = unlock(project, 120)
    assert [each.path for each in edits(state)] == [str(hook)]


def test_wrong_times_and_another_project_are_refused(hook: Path, project: Path, tmp_path: Path, home: Path) -> None:
    """The error names the remedy."""
    for seconds in (0, LONGEST + 1, -5):
        with pytest.raises(AgentHooksError, match="8 hours"):
            unlock(project, seconds)
    unlock(project)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(AgentHooksError, match=r"agent-hooks unlock --end"):
        unlock(other)


def test_a_state_can_be_read_after_its_end(hook: Path, project: Path) -> None:
    """The next command shows the edits."""
    put(unlock(project), until=time.time() - 1)
    state = read_state(state_path())
    assert state is not None
    assert not state.is_in_force()
