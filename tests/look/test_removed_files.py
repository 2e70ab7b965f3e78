"""Files of records and sessions that are removed, cut or replaced after the index has read them: the rest is shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.look.saved import compose
from agent_hooks.look.view import View
from agent_hooks.records.lines import Decision, Line, Turn
from agent_hooks.records.writer import ChainWriter
from agent_sessions import PLACES, put
from recording import Recorded
from running import Command

LEFT_OUT = re.compile(
    r"(\d+) calls? (?:is|are) left out, because the record or the session file was removed or replaced\."
)


def write(recorded: Recorded, session: str, *calls: str) -> Path:
    """Write a record file with calls of one turn and the files of this turn, and return its path."""
    writer = ChainWriter(str(recorded.directory), session)
    fields: dict[str, Any] = {"tool": "bash", "verdict": "pass", "turn_id": session, "reason": f"reason of {session}"}
    lines: list[tuple[type[Line], dict[str, Any]]] = [
        (Decision, {**fields, "id": call, "input": {"command": f"run {call}"}}) for call in calls
    ]
    lines.append((Turn, {"event": "saved", "turn_id": session, "tree": "/nowhere", "checkpoint": "7", "files": ["a"]}))
    for kind, values in lines:
        head = f'"session":{json.dumps(session)},"client":"claude-code"'.encode()
        writer.write(kind, {"id": writer.new_id()} | values, head)
    path = recorded.directory / writer.name
    writer.close()
    return path


def saved_data(content: bytes) -> dict[str, Any]:
    """Return the data of a saved file."""
    found = re.search(r'id="data">([^<]*)</script>', content.decode())
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(b"x" * (path.stat().st_size + 1000))


def shift(path: Path) -> None:
    """Put a line in front, so that the known places are within lines."""
    path.write_bytes(b'{"a": 1}\n' + path.read_bytes())


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


LOSSES = [remove, cut, empty, overwrite, shift, make_directory]
Loss = Callable[[Path], None]


@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("sessions", [True, False])
def test_the_page_is_saved_after_files_were_removed(
    command: Command, home: Path, *, records: bool, sessions: bool
) -> None:
    """The page says how many calls are left out, and a later call has its card."""
    command("run", "@bash echo first")
    command("look", "--save", "before.html")
    for path in (home / ".agent" / "records").glob("*.jsonl") if records else ():
        path.unlink()
    for path in (command.project / ".agent" / "sessions").rglob("*.jsonl") if sessions else ():
        path.unlink()
    command("run", "@bash echo second")
    done = command("look", "--save", "after.html")
    data = saved_data((command.project / "after.html").read_bytes())
    assert data["saved"]["cards"] == (1 if records else 2)
    assert data["saved"]["note"] in done.stdout
    assert bool(LEFT_OUT.search(done.stdout)) is records


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("client", [*PLACES, "opencode"])
def test_the_page_is_saved_after_a_session_file_was_lost(
    client: str, loss: Loss, recorded: Recorded, tmp_path: Path
) -> None:
    """Only the session file had its calls. The loss comes before the next refresh, or after it."""
    path = put(tmp_path, client)
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total
    before = compose(view)
    loss(path)
    during = compose(view)
    assert (during.calls, during.cards) == (before.calls, before.cards)
    lost = [view.card(row)["lost"] for row in range(before.calls)]
    assert loss is shift or all(str(path) in str(each) for each in lost)
    view.refresh()
    after = compose(view)
    if loss in (remove, make_directory) or (loss in (cut, empty, overwrite) and client != "opencode"):
        found = LEFT_OUT.search(after.note)
        assert found is not None
        assert (after.calls, after.cards, int(found[1])) == (0, 0, before.calls)
    else:
        # The calls of a moved text are read again.  The index cannot see that a database is damaged, so its calls stay.
        assert after.calls >= before.calls
    view.close()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_page_is_saved_after_a_record_file_was_lost(loss: Loss, recorded: Recorded) -> None:
    """The other files' calls have their cards, and the lost one's cards say which file is lost."""
    path = write(recorded, "s1", "one", "two")
    write(recorded, "s2", "three")
    view = View(recorded.home)
    assert view.refresh().total == 3
    assert view.card(0)["lost"] is None
    loss(path)
    during = compose(view)
    assert (during.calls, during.cards) == (3, 3)
    row = view.row_of("one")
    assert row is not None
    card = view.card(row)
    assert card["command"] == "bash run one"
    assert card["reason"] == ""
    assert card["turn"] is None
    assert (
        card["lost"] == f"a part of this call cannot be read any more, because its file was removed or changed: {path}"
    )
    view.refresh()
    after = compose(view)
    again = view.row_of("three")
    assert again is not None
    assert view.card(again)["reason"] == "reason of s2"
    assert after.cards == (3 if loss is shift else 1)
    view.close()


def replace_in_place(path: Path, text: bytes, *, later: bool) -> None:
    """Give a file another content.  If `later`, it has the same length and another time."""
    was = path.stat()
    path.write_bytes(text[: was.st_size].ljust(was.st_size, b"\n") if later else text + b"\n" * was.st_size)
    os.utime(path, (was.st_atime, was.st_mtime + later))
    assert path.stat().st_ino == was.st_ino


@pytest.mark.parametrize("later", [True, False])
def test_a_record_file_that_was_overwritten_in_place_is_read_again(later: bool, recorded: Recorded) -> None:
    """The file is the same for the system.  It is longer, or it has the same length and another time."""
    path = write(recorded, "s1", "one", "two")
    write(recorded, "s2", "three")
    view = View(recorded.home)
    assert view.refresh().total == 3
    replace_in_place(path, path.read_bytes().replace(b"one", b"new"), later=later)
    view.refresh()
    rows = {name: view.row_of(name) for name in ("one", "two", "new", "three")}
    assert rows["one"] is None
    assert view.card(rows["new"] or 0)["reason"] == "reason of s1"
    assert view.summary()["calls"] == 3
    assert view.search("run one") == []
    view.close()


def test_a_session_file_that_cannot_be_read_is_named_and_the_others_are_shown(
    recorded: Recorded, tmp_path: Path
) -> None:
    """The system gives an input or output error, as a damaged disk does."""
    path = put(tmp_path, "codex")
    broken = path.with_name("rollout-0.jsonl")
    broken.symlink_to("/proc/self/mem")
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    assert [(entry["place"], entry["why"]) for entry in view.summary()["left_out"]] == [
        (str(broken), "Input/output error")
    ]
    view.close()


def test_a_call_that_another_process_removes_meanwhile_is_left_out(recorded: Recorded) -> None:
    """Its row is in the columns of this view, and in the index no more."""
    path = write(recorded, "s1", "one", "two")
    write(recorded, "s2", "three")
    view = View(recorded.home)
    view.refresh()
    other = View(recorded.home)
    path.unlink()
    other.refresh()
    other.close()
    found = compose(view)
    assert (found.calls, found.cards, found.removed) == (1, 1, 2)
    assert found.note.endswith(" 2 calls are left out, because the record or the session file was removed or replaced.")
    assert list(saved_data(found.content)["ids"]) == ["three"]
    view.close()


def test_another_turn_at_the_place_of_a_replaced_file_is_not_taken_for_this_one(recorded: Recorded) -> None:
    """The record file has the same length, and tells of another turn."""
    path = write(recorded, "s1", "one")
    view = View(recorded.home)
    view.refresh()
    assert view.card(0)["turn"]["files"] == ["a"]
    text = path.read_text()
    path.write_text(re.sub(r'("turn_?[iI]d":)"s1"([^\n]*"files")', r'\1"s9"\2', text))
    assert path.read_text() != text
    assert view.card(0)["turn"]["files"] == []
    view.close()
