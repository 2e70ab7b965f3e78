"""The files of a session after its process was killed, at every write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_hooks.host.session import Session
from host.killing import MOMENTS

TESTS = Path(__file__).parent.parent
ALWAYS_NEW = {"timestamp", "id", "cwd", "branchedFrom", "summary", "tokensBefore"}


def plain(value: Any) -> Any:
    """Return an entry without the parts that differ between two runs: times, ids, paths, and their quotes."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key not in ALWAYS_NEW}
    return [plain(each) for each in value] if isinstance(value, list) else value


def sessions_of(project: Path) -> list[tuple[list[Any], list[str]]]:
    """Open the sessions of a run, in the order of their beginning; return entries and notes of each."""
    found = []
    noted = project / "sessions"
    for path in noted.read_text().splitlines() if noted.exists() else []:
        session = Session.open(project / ".agent" / "sessions" / path, str(project))
        found.append((plain(list(msgspec.to_builtins(session.entries))), session.notes))
        session.close()
    return found


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.slow
def test_a_kill_at_any_write_loses_at_most_the_unfinished_line(tmp_path: Path, backend: str) -> None:
    """Every file opens with exactly the entries that were written completely, and a note names an unfinished line."""
    subprocess.run([sys.executable, "-m", "host.killing", backend, str(tmp_path)], cwd=TESTS, check=True, timeout=300)
    whole = [entries for entries, _ in sessions_of(tmp_path / "whole")]
    writes: list[list[int]] = json.loads((tmp_path / "whole" / "writes").read_text())
    assert [len(entries) for entries in whole] == writes[-1]
    assert len(writes) > 20

    for number in range(1, len(writes) + 1):
        before = writes[number - 2] if number > 1 else []
        for moment in MOMENTS:
            project = tmp_path / f"{number}-{moment}"
            # The file of a new session exists when it is whole, or not at all.
            begins = len(writes[number - 1]) > len(before)
            expected = writes[number - 1] if moment == "after" and not begins else before
            found = sessions_of(project)
            assert [len(entries) for entries, _ in found] == expected, project.name
            assert [entries for entries, _ in found] == [
                each[:length] for each, length in zip(whole, expected, strict=False)
            ], project.name
            dropped = [note for _, notes in found for note in notes if "not finished" in note]
            assert len(dropped) == (moment == "middle" and not begins), project.name
            assert len(list((project / ".agent" / "sessions").glob("*.jsonl"))) == len(expected)
