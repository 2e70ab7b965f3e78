"""The fuzzed readers keep their promises, and a finding is kept and named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from checks.fuzz import __main__ as fuzz
from checks.fuzz.targets import TARGETS, Finding, Target

# Inputs of earlier findings, by target.
FOUND = [
    ("intercept", b"tools:\n  grep:\n    transformers:\n       exclude: {directories: [a]}\n"),
    ("replies", b'{"error": "a text}\n'),
    ("replies", b'{"error": "a\xc7text"}\n'),
]


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_give_no_finding(name: str) -> None:
    """A small sample; `python -m checks.fuzz` tries more."""
    count, finding = fuzz.round_of(name, fuzz.changed(TARGETS[name]), seed=1, most=40)
    assert (finding, count >= 40) == ("", True)


@pytest.mark.parametrize("name", TARGETS)
def test_well_formed_inputs_give_no_finding(name: str) -> None:
    """The seeds are read."""
    seeds = TARGETS[name].seeds()
    assert seeds
    for data in seeds:
        TARGETS[name].read(data)


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_earlier_findings_stay_mended(name: str, data: bytes) -> None:
    """Each of these inputs raised once."""
    TARGETS[name].read(data)


def test_a_finding_is_made_small_kept_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kept file repeats it."""

    def read(data: bytes) -> None:
        if b"x" in data:
            raise Finding("an x")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TARGETS, "broken", Target(read, lambda: [b"abc"], (b"x",)))
    monkeypatch.setattr(fuzz, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["fuzz", "broken", "--seconds", "60", "--seed", "1"])
    assert fuzz.main() == 1
    (kept,) = (tmp_path / fuzz.KEPT).iterdir()
    assert kept.read_bytes() == b"x"
    out = capsys.readouterr().out
    assert "an x" in out
    assert "findings: 1" in out
    monkeypatch.setattr(sys, "argv", ["fuzz", "--repeat", str(kept)])
    with pytest.raises(Finding, match="an x"):
        fuzz.main()


def test_an_input_of_no_target_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the file names the target."""
    monkeypatch.setattr(sys, "argv", ["fuzz", "--repeat", str(tmp_path / "nothing-1")])
    assert fuzz.main() == 2
