"""A kill in the middle of a command breaks no promise, and a broken promise is found."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.crash import __main__ as crash
from checks.crash.place import Place
from checks.crash.scenarios import SCENARIOS, Scenario

# These kills need strace, which a machine may lack.
KILLS = {"session": ("write", 3), "trust": ("write", 2)}


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLS)
def test_a_killed_command_breaks_no_promise(name: str, tmp_path: Path) -> None:
    """One kill of two scenarios; `python -m checks.crash` tries all."""
    place = Place(tmp_path / "place")
    SCENARIOS[name].prepare(place)
    place.keep()
    kind, number = KILLS[name] if shutil.which("strace") else ("moment", 0)
    assert crash.problems_of(crash.Kill(name, kind, number), place, 1, 0.5) == []


def test_a_broken_promise_is_found_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table counts it, and the line below it repeats it; `--resume` passes over the tried kills."""

    def check(place: Place) -> Iterator[str]:
        yield "the promise is broken"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(SCENARIOS, "session", Scenario(lambda place: None, ("--version",), check))
    monkeypatch.setattr(sys, "argv", ["crash", "session", "--moments", "1", "--seed", "1"])
    assert crash.main() == 1
    out = capsys.readouterr().out
    assert "session/moment/0: the promise is broken" in out
    assert "--only session/moment/0 --seed 1" in out
    monkeypatch.setattr(sys, "argv", ["crash", "session", "--moments", "1", "--seed", "1", "--resume"])
    assert crash.main() == 1
    assert len((tmp_path / crash.KEPT).read_text().splitlines()) == 1
