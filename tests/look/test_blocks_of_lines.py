"""Record files are read in blocks: a line may be longer than one, lie in two of them, or have no end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_hooks.look.index import records
from agent_hooks.look.view import View
from recording import Recorded


def line(number: int, command: str, **fields: object) -> str:
    """Return the line of a decision."""
    given = {
        "kind": "decision",
        "v": 1,
        "prev": "",
        "n": number,
        "time": "2026-11-20T10:00:00Z",
        "clock": number,
        "id": f"c{number}",
        "session": "s",
        "client": "codex",
        "tool": "bash",
        "verdict": "pass",
        "input": {"command": command},
        **fields,
    }
    return json.dumps(given) + "\n"


@pytest.fixture
def path(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a record file, with blocks of 500 bytes and lines of at most 3,000."""
    monkeypatch.setattr(records, "_BLOCK", 500)
    monkeypatch.setattr(records, "LONGEST", 3000)
    recorded.directory.mkdir()
    return recorded.directory / "s.1.1000.jsonl"


def commands(view: View) -> list[str]:
    """Refresh, and return the beginnings of all calls."""
    total = view.refresh().total
    return [each[:10] for each in view.command(list(range(total)))]


def test_lines_of_any_length_are_read_at_their_places(recorded: Recorded, path: Path) -> None:
    """Cards read a line again at its offset, so that shows that each offset is right."""
    texts = ["short", "a" * 200, "b" * 1200, "c", "d" * 480, "e" * 2000, "last"]
    path.write_text("".join(line(number, text) for number, text in enumerate(texts)))
    view = View(recorded.home)
    assert view.refresh().total == len(texts)
    assert [view.card(row)["input"]["command"] for row in range(len(texts))] == texts
    assert view.summary()["left_out"] == []
    view.close()


def test_a_line_that_is_too_long_is_left_out_and_the_next_one_is_not(recorded: Recorded, path: Path) -> None:
    """The page says that one line cannot be read."""
    path.write_text(line(0, "one") + line(1, "x" * 5000) + line(2, "three"))
    view = View(recorded.home)
    assert commands(view) == ["bash one", "bash three"]
    (left,) = view.summary()["left_out"]
    assert (left["what"], left["why"]) == ("1 line", "cannot be read")
    view.close()


def test_a_long_line_without_an_end_waits_for_it(recorded: Recorded, path: Path) -> None:
    """Whatever part of it is there, and whether it would be too long in the end."""
    long, later = line(1, "y" * 1500), line(2, "three")
    path.write_text(line(0, "one"))
    view = View(recorded.home)
    for end in (1, 400, 700, 1200, len(long) - 1):
        path.write_text(line(0, "one") + long[:end])
        assert commands(view) == ["bash one"]
    path.write_text(line(0, "one") + long + later)
    assert commands(view) == ["bash one", "bash yyyyy", "bash three"]
    endless = "z" * 4000
    path.write_text(line(0, "one") + long + later + endless)
    assert len(commands(view)) == 3
    path.write_text(line(0, "one") + long + later + endless + "\n" + line(3, "four"))
    assert commands(view)[3:] == ["bash four"]
    view.close()


def test_empty_lines_and_lines_of_other_kinds_and_versions_are_counted(recorded: Recorded, path: Path) -> None:
    """A note is none of a call, and is not left out."""
    note = '{"kind":"note","v":1,"prev":"","n":1,"time":"2026-11-20T10:00:00Z","clock":1,"id":"n","about":"clock"}\n'
    newer = line(1, "newer", v=2) + '{"kind":"thought","v":2}\n'
    path.write_text(f"\n{note}{newer}{line(2, 'two')}nonsense\n")
    view = View(recorded.home)
    assert commands(view) == ["bash two"]
    assert sorted(left["what"] for left in view.summary()["left_out"]) == ["2 lines", "2 lines"]
    view.close()


def test_lines_that_come_later_are_read_from_where_the_last_reading_ended(recorded: Recorded, path: Path) -> None:
    """The number of the lines so far is kept too."""
    view = View(recorded.home)
    for number in range(12):
        with path.open("a") as file:
            file.write(line(number, f"number {number}"))
        assert view.refresh().total == number + 1
    (source,) = view._index.sources.by_path.values()
    assert (source.line, source.offset) == (12, path.stat().st_size)
    view.close()
