"""Session files: written as it happens, never changed."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

import pytest

from agent_hooks import SessionError, UserMessage
from agent_hooks.host.session import Session


def test_entries_are_in_the_file_as_soon_as_they_are_added(project: Path) -> None:
    """Each is one line of JSON; nothing waits for the end."""
    session = Session.create(str(project))
    session.add_model("puppet", "puppet")
    session.add_message(UserMessage(content="hi\u2028there", timestamp=5))

    assert session.path is not None
    lines = session.path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    entries = [json.loads(line) for line in lines]
    assert [entry["type"] for entry in entries] == ["session", "model_change", "message"]
    assert entries[0] | {"timestamp": ""} == {
        "type": "session",
        "version": 1,
        "id": session.id,
        "timestamp": "",
        "cwd": str(project),
    }
    assert entries[2]["message"] == {
        "role": "user",
        "content": [{"type": "text", "text": "hi\u2028there"}],
        "timestamp": 5,
    }
    assert len(session.entries) == 3
    session.close()
    session.close()


def test_the_directory_keeps_itself_out_of_git(project: Path) -> None:
    """No checkpoint can hold a live session file."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    Session.create(str(project)).close()
    Session.create(str(project)).close()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=project, check=True, capture_output=True, text=True)
    assert status.stdout == ""
    assert len(list((project / ".agent" / "sessions").glob("*.jsonl"))) == 2


def test_a_directory_that_cannot_be_written_is_named(project: Path) -> None:
    """A file where the directory should be."""
    (project / ".agent").write_text("a file")
    with pytest.raises(SessionError, match=r"\.agent/sessions/.*cannot be saved: Not a directory"):
        Session.create(str(project))


def test_a_full_disk_is_told_and_the_entry_is_kept_in_memory(project: Path) -> None:
    """A limit on the file's size stands for the disk."""
    session = Session.create(str(project))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert session.path is not None
    resource.setrlimit(resource.RLIMIT_FSIZE, (session.path.stat().st_size + 10, hard))
    try:
        with pytest.raises(SessionError, match="cannot be saved any more: File too large"):
            session.add_model("a", "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(session.entries) == 2
    session.stop_saving()
    session.add_model("c", "d")
    assert len(session.entries) == 3
