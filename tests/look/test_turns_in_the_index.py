"""The turns in the index: calls and the files of their turn come in any order, and from several files and processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.look.index import book
from agent_hooks.look.index.columns import CHANGED_FILES
from agent_hooks.look.view import View
from agent_hooks.records.lines import Decision, Line, Result, Turn
from agent_hooks.records.writer import ChainWriter
from recording import Recorded


def write(recorded: Recorded, session: str, *lines: tuple[type[Line], dict[str, Any]]) -> Path:
    """Write lines into a record file of their own."""
    writer = ChainWriter(str(recorded.directory), session)
    for kind, fields in lines:
        head = f'"session":{json.dumps(session)},"client":"claude-code"'.encode()
        writer.write(kind, {"id": writer.new_id()} | fields, head)
    path = recorded.directory / writer.name
    writer.close()
    return path


def decided(id: str, turn: str) -> tuple[type[Line], dict[str, Any]]:
    """Return the line of a call in a turn."""
    fields = {"id": id, "tool": "bash", "verdict": "pass", "input": {"command": f"run {id}"}, "turn_id": turn}
    return Decision, fields


def saved(turn: str, *files: str) -> tuple[type[Line], dict[str, Any]]:
    """Return the line with the files of a turn."""
    return Turn, {"event": "saved", "turn_id": turn, "tree": "/nowhere", "checkpoint": "7", "files": files}


def flagged(view: View) -> dict[str, bool]:
    """Refresh, and tell of each call by its id whether its turn changed files."""
    view.refresh()
    flags = view.columns().flags
    rows = view._index.ask("SELECT id, row FROM calls")
    return {call: bool(flags[row] & CHANGED_FILES) for call, row in rows}


def test_the_files_of_a_turn_may_come_before_its_calls(recorded: Recorded) -> None:
    """The process that ended the turn wrote its file first."""
    write(recorded, "s", saved("t1", "a"), saved("t2"))
    view = View(recorded.home)
    assert flagged(view) == {}
    write(recorded, "s", decided("c1", "t1"), decided("c2", "t2"), decided("c3", ""))
    assert flagged(view) == {"c1": True, "c2": False, "c3": False}
    turn = view.card(view.row_of("c1") or 0)["turn"]
    assert (turn["files"], turn["checkpoint"], turn["ended"], turn["bringBack"]) == (["a"], "7", True, None)
    view.close()


def test_a_turn_is_known_after_a_restart_and_in_another_view(recorded: Recorded) -> None:
    """Its calls of before get the flag, and so does a call that comes still later."""
    write(recorded, "s", decided("c1", "t1"), decided("c2", "t2"))
    View(recorded.home).refresh()
    view, other = View(recorded.home), View(recorded.home)
    assert flagged(view) == flagged(other) == {"c1": False, "c2": False}
    write(recorded, "s", decided("c3", "t1"), saved("t1", "a"))
    write(recorded, "s", decided("c4", "t1"))
    expected = {"c1": True, "c2": False, "c3": True, "c4": True}
    assert flagged(view) == expected
    assert flagged(other) == expected
    assert view.summary()["files"] == 3


def test_the_result_of_a_call_tells_its_turn_where_the_decision_does_not(recorded: Recorded) -> None:
    """The turn began with this call, for example, and another process has its decision."""
    result = Result, {"id": "c1", "tool": "bash", "status": "ok", "turn_id": "t1", "redacted": {"token": 1}}
    write(recorded, "s", decided("c1", ""), result, saved("t1", "a"))
    view = View(recorded.home)
    assert flagged(view) == {"c1": True}
    view.close()


def test_turns_that_are_out_of_memory_are_found_again(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large index keeps only those of late."""
    monkeypatch.setattr(book, "_MOST_RECENT", 2)
    calls = [decided(f"c{number}", f"t{number % 3}") for number in range(9)]
    write(recorded, "s", *calls, saved("t1", "a"))
    view = View(recorded.home)
    assert flagged(view) == {f"c{number}": number % 3 == 1 for number in range(9)}
    view.close()


def test_files_of_two_working_trees_are_told_apart(recorded: Recorded) -> None:
    """Those of the second have its directory in front; the number of all counts those that are not named."""
    other = {**saved("t1", "b")[1], "tree": "/other", "more": 3}
    write(recorded, "s", decided("c1", "t1"), saved("t1", "a"), (Turn, other))
    view = View(recorded.home)
    assert flagged(view) == {"c1": True}
    turn = view.card(0)["turn"]
    assert (turn["files"], turn["more"]) == (["a", "/other/b"], 3)
    view.close()


def test_a_record_file_that_is_removed_takes_its_files_with_it(recorded: Recorded) -> None:
    """The card of a call that is left does not name them."""
    write(recorded, "s", decided("c1", "t1"))
    path = write(recorded, "s", saved("t1", "a"), decided("c2", "t1"))
    view = View(recorded.home)
    assert flagged(view) == {"c1": True, "c2": True}
    path.unlink()
    view.refresh()
    assert view.card(0)["turn"]["files"] == []
    view.close()


def test_a_line_without_a_turn_changes_nothing(recorded: Recorded) -> None:
    """Neither the beginning of a turn, nor a line that another program wrote."""
    write(recorded, "s", decided("c1", "t1"), (Turn, {"event": "start", "turn_id": "t1"}), saved("", "a"))
    view = View(recorded.home)
    assert flagged(view) == {"c1": False}
    view.close()


@pytest.mark.parametrize("first", ["calls", "files"])
def test_of_the_calls_of_a_turn_those_count_that_may_have_changed_files(recorded: Recorded, first: str) -> None:
    """In whichever order the lines are read; the card of another call says that it was not this one."""
    kind, fields = decided("c1", "t1")
    calls = ((kind, fields | {"may_change": True}), decided("c2", "t1"))
    kind, fields = saved("t1", "a")
    files = ((kind, fields | {"marked": True}),)
    view = View(recorded.home)
    for lines in (calls, files) if first == "calls" else (files, calls):
        write(recorded, "s", *lines)
        view.refresh()
    assert flagged(view) == {"c1": True, "c2": False}
    cards = [view.card(view.row_of(call) or 0)["turn"] for call in ("c1", "c2")]
    assert [(each["files"], each["mayBeIts"]) for each in cards] == [(["a"], True), (["a"], False)]
    view.close()
