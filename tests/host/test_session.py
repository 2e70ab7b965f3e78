"""Session files: written entry by entry, never changed; opened again, or refused with the line that is wrong."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from agent_hooks import SessionError, ToolResultMessage, UserMessage
from agent_hooks.cli.interactive.candidates import session_option
from agent_hooks.host.session import Session
from agent_hooks.host.session_file import SessionSummary, list_sessions
from agent_hooks.transcripts import find_transcripts
from agent_hooks.values.wire import to_json


def test_entries_are_in_the_file_as_soon_as_they_are_added(project: Path) -> None:
    """Each entry is one line of JSON, written at once."""
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
    """A file has the name of the directory."""
    (project / ".agent").write_text("a file")
    with pytest.raises(SessionError, match=r"\.agent/sessions/.*cannot be saved: Not a directory"):
        Session.create(str(project))


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes, like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_a_full_disk_does_not_take_is_written_as_soon_as_there_is_room(project: Path) -> None:
    """There is one report, and another when all is written; no line is broken, and none is missing."""
    session = Session.create(str(project))
    told: list[str] = []
    session.report = told.append
    assert session.path is not None
    with room_for(session.path.stat().st_size + 10):
        session.add_model("a", "b")
        session.add_model("c", "d")
    assert told == [f"{session.path}: cannot be written: File too large; going on, and trying again with each entry"]
    session.add_model("e", "f")
    assert told[1:] == [f"{session.path}: is written again, and nothing is missing"]
    entries = session.entries
    session.close()
    again = Session.open(session.path, str(project))
    assert again.entries == entries
    assert again.notes == []
    again.close()


def test_what_could_not_be_written_is_told_at_the_end(project: Path) -> None:
    """Closing tries for the last time; the file can be opened."""
    session = Session.create(str(project))
    told: list[str] = []
    session.report = told.append
    assert session.path is not None
    with room_for(session.path.stat().st_size + 10):
        session.add_model("a", "b")
        session.add_model("c", "d")
        session.close()
    assert told[1:] == [f"{session.path}: 2 entries could not be written"]
    again = Session.open(session.path, str(project))
    assert len(again) == 1
    again.close()


def test_a_session_for_which_there_is_no_room_leaves_no_file(project: Path) -> None:
    """Not even its header could be written."""
    with room_for(10), pytest.raises(SessionError, match="cannot be saved: File too large"):
        Session.create(str(project))
    assert list((project / ".agent" / "sessions").glob("*.jsonl")) == []


# ---- opening ---------------------------------------------------------------------------------------------------------


def written(project: Path, *texts: str) -> Path:
    """Return the file of a session with these prompts."""
    session = Session.create(str(project))
    for text in texts:
        session.add_message(UserMessage(content=text, timestamp=5))
    session.close()
    assert session.path is not None
    return session.path


def test_a_session_goes_on_where_it_was(project: Path) -> None:
    """It has the same id and entries, and new entries come after them."""
    path = written(project, "one", "two")
    session = Session.open(path, str(project))
    assert [entry.type for entry in session.entries] == ["session", "message", "message"]
    assert session.id == json.loads(path.read_text().splitlines()[0])["id"]
    session.add_model("a", "b")
    session.close()
    again = Session.open(path, str(project))
    assert again.entries == session.entries
    again.close()


HEADER = '{"type":"session","version":1,"id":"x","timestamp":"2026-01-01T00:00:00Z","cwd":"/x"}\n'
USER = '{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}'
MESSAGE = f'{{"type":"message","timestamp":"t","message":{USER}}}\n'


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "there is no whole line in it"),
        ("hello", 1, "there is no whole line in it"),
        ("hello\n", 1, "is not an entry of a session: JSON is malformed"),
        ("{}\n", 1, "is not an entry of a session"),
        ("\0\0\0\n", 1, "is not an entry of a session"),
        (MESSAGE, 1, "it begins with 'message', not with 'session'"),
        (HEADER.replace(":1,", ":2,"), 1, "was written by a newer agent-hooks (version 2"),
        (HEADER + HEADER, 2, "a second session begins here"),
        (HEADER + MESSAGE + "\n" + MESSAGE, 3, "is not an entry of a session"),
        (HEADER + MESSAGE[:20] + "\n" + MESSAGE, 2, "is not an entry of a session"),
        (HEADER + MESSAGE.replace("user", "system"), 2, "Invalid value 'system' - at `$.message.role`"),
        (HEADER + MESSAGE.replace("message", "massage", 1), 2, "Invalid value 'massage'"),
        (HEADER + MESSAGE + '{"type":"compaction","timestamp":"t","summary":7}\n', 3, "Expected `str`, got `int`"),
        (HEADER + MESSAGE.replace("hi", "\udcff"), 2, "is not an entry of a session"),
        (HEADER + "[" * 100_000 + "\n", 2, "is not an entry of a session"),
    ],
)
def test_a_file_that_is_no_session_is_named_with_its_line_and_left_as_it_is(
    project: Path, text: str, line: int, says: str
) -> None:
    """The file may be cut off, foreign, of a newer version, or damaged in the middle."""
    path = project / "s.jsonl"
    data = text.encode("utf-8", "surrogateescape")
    path.write_bytes(data)
    with pytest.raises(SessionError) as caught:
        Session.open(path, str(project))
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert says in str(caught.value)
    assert path.read_bytes() == data
    Session.create(str(project)).close()


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "link to nothing"])
def test_what_is_no_file_cannot_be_opened(project: Path, kind: str) -> None:
    """Opening a pipe does not wait for its other end."""
    path = project / "s.jsonl"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to nothing":
        path.symlink_to("gone")
    with pytest.raises(SessionError, match=f"^{path}: (is not a regular file|.*No such file)"):
        Session.open(path, str(project))


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_an_unfinished_last_line_is_dropped_and_said(project: Path, cut: int) -> None:
    """Opening leaves the file alone; the next entry takes the line's place.  A line that lacks only its end is kept."""
    path = written(project, "one", "two")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    session = Session.open(path, str(project))
    dropped = cut > 1
    assert path.read_bytes() == whole[:-cut]
    assert len(session) == 3 - dropped
    assert session.notes == [f"{path}:3: the last line was not finished, and is dropped"] * dropped
    session.add_message(UserMessage(content="three", timestamp=6))
    session.close()
    kept = whole if not dropped else whole[: whole.rindex(b"\n", 0, -1) + 1]
    assert path.read_bytes().startswith(kept)
    again = Session.open(path, str(project))
    assert (again.entries, again.notes) == (session.entries, [])
    again.close()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(texts=st.lists(st.text(st.characters()), min_size=1, max_size=4), details=VALUES, data=st.data())
def test_whatever_was_said_is_there_again_and_cut_anywhere_it_is_there_up_to_the_cut(
    texts: list[str], details: Any, data: st.DataObject
) -> None:
    """Odd characters and odd numbers come back, and a file that is cut at any byte has its whole lines."""
    with tempfile.TemporaryDirectory() as directory:
        session = Session.create(directory)
        for text in texts:
            session.add_message(UserMessage(content=text, timestamp=1))
            session.add_message(
                ToolResultMessage(tool_call_id="1", tool_name="x", content=text, timestamp=1, details=details)
            )
        session.close()
        assert session.path is not None
        whole = Session.open(session.path, directory)
        whole.close()
        assert len(whole) == len(session)

        written = session.path.read_bytes()
        header = written.index(b"\n") + 1
        cut = data.draw(st.integers(header, len(written)))
        session.path.write_bytes(written[:cut])
        again = Session.open(session.path, directory)
        again.close()
        lines = written[:cut].count(b"\n")
        lines += written[cut : cut + 1] == b"\n"  # only its end is missing
        assert to_json(again.entries) == to_json(whole.entries[:lines])


def test_a_session_of_another_directory_is_told(project: Path) -> None:
    """The directory may have moved, so the session opens, with a note."""
    path = written(project, "one")
    (project / "elsewhere").mkdir()
    session = Session.open(path, str(project / "elsewhere"))
    assert session.notes == [f"{path}: this session was begun in {project}"]
    session.close()


# ---- two at once -----------------------------------------------------------------------------------------------------


def test_a_session_that_is_open_cannot_be_opened_again(project: Path) -> None:
    """This holds for a new session and for one that was opened.  A closed one can be opened."""
    created = Session.create(str(project))
    created.add_message(UserMessage(content="hi", timestamp=1))
    assert created.path is not None
    with pytest.raises(SessionError, match="another process works on this session"):
        Session.open(created.path, str(project))
    created.close()
    opened = Session.open(created.path, str(project))
    with pytest.raises(SessionError, match="another process works on this session"):
        Session.open(created.path, str(project))
    opened.close()
    Session.open(created.path, str(project)).close()


def test_on_a_file_system_without_locks_a_session_goes_on_without(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session without a lock is better than none."""

    def flock(file: int, how: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    path = written(project, "one")
    session = Session.open(path, str(project))
    assert len(session) == 2
    session.close()


# ---- which there are -------------------------------------------------------------------------------------------------


def test_sessions_are_listed_the_last_used_first(project: Path) -> None:
    """Each has its first prompt; sessions without a prompt and other files are left out."""
    assert list_sessions(str(project)) == []
    first, second = written(project, "one", "more"), written(project, "two")
    written(project)
    for name, text in [("a", "hello\n"), ("b", HEADER), ("c", MESSAGE * 2), ("d", HEADER + "x\n" + MESSAGE)]:
        (first.parent / f"{name}.jsonl").write_text(text)
    os.mkfifo(first.parent / "pipe.jsonl")  # not waited for
    os.utime(second, (5, 5))
    found = list_sessions(str(project))
    assert [(each.path, each.first_text, each.last_text, each.messages) for each in found] == [
        (str(first), "one", "more", 2),
        (str(second), "two", "two", 1),
    ]
    assert found[1].written == "1970-01-01T00:00:05+00:00"


def test_the_last_prompt_is_one_of_the_person(project: Path) -> None:
    """Neither a text of a hook nor an unfinished line; a session goes on being listed."""
    path = written(project, "one", "two\nlines")
    session = Session.open(path, str(project))
    session.add_message(UserMessage(content="a note", timestamp=5, is_context=True))
    session.close()
    with path.open("a") as file:
        file.write('{"type":"message","message":{"role":"user"')
    (found,) = list_sessions(str(project))
    assert (found.last_text, found.messages) == ("two\nlines", 4)
    assert session_option(found).label.endswith("  one … two lines (4 messages)")


@given(st.text(), st.text())
def test_a_session_is_one_line_that_fits(first: str, last: str) -> None:
    """Both prompts are in it as far as there is room, and its preview has all of them where there is not."""
    summary = SessionSummary("/p", "2026-11-27T07:00:00+00:00", first, last, 12, "id")
    label, preview = session_option(summary)
    assert get_cwidth(label) <= 76
    assert label.endswith(" (12 messages)")
    assert "…" not in label or preview or " … " in label


# ---- how long it takes -----------------------------------------------------------------------------------------------


def test_an_entry_is_one_write_whatever_was_written_before(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a write do not grow with the session."""
    session = Session.create(str(project))
    sizes: list[int] = []
    real = os.write

    def write(file: int, data: bytes) -> int:
        sizes.append(len(data))
        return real(file, data)

    monkeypatch.setattr(os, "write", write)
    for _ in range(1000):
        session.add_message(UserMessage(content="hi", timestamp=5))
    session.close()
    assert len(sizes) == 1000
    assert len(set(sizes)) == 1


def test_a_directory_that_goes_away_has_no_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program may move it after it was found and before it is read."""
    (tmp_path / ".agent" / "sessions").mkdir(parents=True)
    read = os.scandir

    def gone(path: Any = ".") -> Any:
        if os.fspath(path).rstrip("/").endswith("sessions"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return read(path)

    monkeypatch.setattr(os, "scandir", gone)
    assert list_sessions(str(tmp_path)) == []
    assert list(find_transcripts([str(tmp_path)])) == []
