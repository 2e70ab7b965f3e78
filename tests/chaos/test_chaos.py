"""A sample of the matrix, its verdicts, and its page; `python -m checks.chaos` runs all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chaos.page
from chaos.cells import KINDS, MODES, PLACES, Cell, chosen, matrix, tenth
from chaos.faults import FAMILIES, FAULTS
from chaos.hook_file import broken_hook
from chaos.page import PAGE, RESULTS, reason, write, written
from chaos.verdict import Observation, judge
from chaos.version import version
from chaos.workers import run_all
from support import PATIENCE, ROOT

RUN = json.loads(RESULTS.read_text())
SAMPLE = (
    "raises an Exception/gate/inline/asyncio/wrapped",
    "leaves a cancelled scope open/observer/inline/trio/wrapped",
    "answers a mapping in a circle/rewriter/inline/asyncio/wrapped",
    "kills its process group/observer/process/trio/wrapped",
    "changes the directory/result/inline/asyncio/host",
    "segfaults/gate/process/asyncio/host",
    "raises SystemExit/gate/inline/asyncio/server",
)


def test_the_cells_of_a_sample_are_green() -> None:
    """Faults of several families, in both modes, on both backends and at each place."""
    cells = [cell for cell in matrix() if cell.name in SAMPLE]
    assert len(cells) == len(SAMPLE)
    assert {cell.place for cell in cells} == set(PLACES)
    assert {cell.mode for cell in cells} == set(MODES)
    assert {cell.kind for cell in cells} == set(KINDS)
    assert {result["cell"]: result["wrong"] for result in run_all(cells, 1)} == {cell.name: [] for cell in cells}


# ---- the matrix


def test_there_are_more_than_a_hundred_faults_in_every_combination() -> None:
    """The resident server runs on asyncio only, so a fault has 40 cells."""
    assert len(FAULTS) > 100
    assert len(FAULTS) == sum(map(len, FAMILIES.values()))
    assert len(matrix()) == len(set(matrix())) == 40 * len(FAULTS)


def test_every_broken_hook_is_valid_python() -> None:
    """A hook that does not load would show nothing."""
    for cell in matrix():
        compile(broken_hook(cell, Path("/began")), cell.name, "exec")


def test_a_pattern_chooses_cells() -> None:
    """A fault alone stands for all of its cells."""
    assert len(chosen(matrix(), ("segfaults",))) == 40
    assert len(chosen(matrix(), ("segfaults/gate/*/trio/*",))) == 4
    assert chosen(matrix(), ("no such fault",)) == []


def test_a_tenth_is_the_same_for_the_same_seed() -> None:
    """Another seed gives other cells."""
    cells = matrix()
    assert tenth(cells, "a") == tenth(cells, "a") != tenth(cells, "b")
    assert 0.08 < len(tenth(cells, "a")) / len(cells) < 0.12


# ---- the verdict

GATE = Cell("raises an Exception", "gate", "inline", "asyncio", "host")
GREEN = {
    "trouble": {"text": "blocked", "error": True},
    "banned": {"text": "blocked", "error": True},
    "again": {"text": "blocked", "error": True},
    "after": {"text": "after", "error": False},
    "other": {"text": "notes", "error": False},
    "end": {},
}
SEEN = Observation(ran=["after"], results=GREEN, code=0, stderr="", left=[])


def test_a_cell_without_fault_is_green() -> None:
    """The calls that are forbidden did not run, the others did."""
    assert judge(GATE, SEEN) == ("holds", [])


def _changed(**changes: Any) -> dict[str, Any]:
    return {**GREEN, **changes}


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"ran": ["after", "trouble-forbidden"]}, "a forbidden call ran: trouble-forbidden"),
        ({"ran": ["after", "banned"]}, "a forbidden call ran: banned"),
        (
            {"results": _changed(after={"text": "other text", "error": False})},
            "the result of after is lost: 'other text'",
        ),
        (
            {"results": _changed(trouble={"text": "x" * 70_000, "error": True})},
            "the text of trouble has 70000 characters",
        ),
        ({"results": {key: GREEN[key] for key in GREEN if key != "again"}}, "again has no result"),
        ({"results": {key: GREEN[key] for key in GREEN if key != "end"}}, "the agent did not come to its end"),
        ({"results": _changed(other={"text": "no", "error": True})}, "a call of another tool fails: 'no'"),
        ({"ran": [], "results": _changed(after={"text": "no", "error": True})}, "the broken hook stays closed: 'no'"),
        ({"results": _changed(banned={"cancelled": True})}, "banned did not end"),
        ({"code": 1, "stderr": "boom"}, "the agent ended with 1: 'boom'"),
        ({"code": None}, "the agent ended with None: ''"),
        ({"stderr": "Traceback (most recent"}, "a traceback on stderr: Traceback (most recent"),
        ({"left": ["sleep 600"]}, "left behind: ['sleep 600']"),
        ({"began": False}, "the broken handler did not run"),
        ({"server_ended": False}, "the server does not end"),
    ],
)
def test_each_broken_promise_is_red(changes: dict[str, Any], wrong: str) -> None:
    """The sentence names the promise."""
    assert wrong in judge(GATE, SEEN._replace(**changes))[1]


def test_a_named_fault_only_promises_that_no_forbidden_call_runs() -> None:
    """The table names the faults that no process survives, for hooks inside of the agent."""
    cell = GATE._replace(fault="segfaults")
    gone = Observation(ran=[], results={}, code=-11, stderr="", left=[])
    assert judge(cell, gone) == ("ends", [])
    assert judge(cell, gone._replace(ran=["trouble-forbidden"]))[1] == ["a forbidden call ran: trouble-forbidden"]
    assert judge(cell._replace(mode="process"), gone)[1]


@pytest.mark.parametrize("code", [130, -2])
def test_a_host_that_a_person_interrupts_ends_in_order(code: int) -> None:
    """A rewriter has no deadline; a second Ctrl-C may come while the agent leaves."""
    cell = Cell("sleeps for ever", "rewriter", "inline", "asyncio", "host")
    stopped = Observation(
        ran=[], results={"trouble": {"text": "aborted", "error": True}}, code=code, stderr="", left=[]
    )
    assert judge(cell, stopped) == ("interrupted", [])
    assert judge(cell._replace(kind="gate"), stopped)[1]
    assert judge(cell, stopped._replace(stderr="Traceback (most recent"))[1]


# ---- the page


def test_the_results_and_the_table_of_faults_agree() -> None:
    """Each fault has its outcomes, in the same order, and its reason."""
    found = [(row["family"], row["fault"], row["no_process_survives"]) for row in RUN["faults"]]
    wanted = [(family, fault.name, reason(fault)) for family, faults in FAMILIES.items() for fault in faults]
    assert found == wanted, "run: python -m checks.chaos"
    assert RUN["cells"] == len(matrix())


def test_the_results_have_no_red_cell() -> None:
    """A red cell is a bug."""
    assert RUN["red"] == 0
    assert "RED" not in RESULTS.read_text()


def test_the_table_of_the_page_equals_the_results() -> None:
    """`python -m checks.chaos` writes both, so the table is not edited by hand."""
    assert written(PAGE.read_text(), RUN) == PAGE.read_text()


def test_a_whole_run_writes_its_outcomes_and_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds with another outcome are named. Red cells, and cells that ran on older code, are counted."""
    monkeypatch.setattr(chaos.page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(chaos.page, "RESULTS", tmp_path / "results.json")
    chaos.page.PAGE.write_text("# Title\n\n<!-- last run -->\nold\n<!-- end -->\n\nProse.\n")
    green = {"outcome": "holds", "wrong": [], "day": "2026-11-23", "version": "new"}
    results: dict[str, dict[str, Any]] = {cell.name: green for cell in matrix()}
    name = "raises an Exception/{}".format
    results[name("gate/inline/trio/host")] = {**green, "outcome": "closed", "day": "2026-11-22", "version": "old"}
    results[name("observer/inline/asyncio/server")] = {**green, "wrong": ["lost"]}
    write(results, lambda fault: "new")
    run = json.loads(chaos.page.RESULTS.read_text())
    inline = {"wrapped": "holds", "host": "holds; gate on trio closed", "server": "holds; observer RED"}
    assert run["faults"][0]["inline"] == inline
    assert run["faults"][1]["inline"] == dict.fromkeys(PLACES, "holds")
    text = chaos.page.PAGE.read_text()
    assert "\n2026-11-22 to 2026-11-23: 9,200 cells, 1 red. 1 ran on older code.\n" in text
    assert "\n| It raises | 33 | 31 | 33 | 1 |\n" in text
    assert "old\n" not in text
    assert text.endswith("<!-- end -->\n\nProse.\n")


# ---- the command


def test_a_run_that_was_ended_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A green cell of the same code is not run again; a last line that was cut does not count."""
    file = tmp_path / "results.jsonl"
    names = [
        "/".join(("raises an Exception", kind, "inline", "asyncio", "wrapped"))
        for kind in ("rewriter", "result", "observer")
    ]
    done = {"cell": names[0], "outcome": "holds", "wrong": ["as before"], "seconds": 1, "day": "2026-11-23"}
    now = version("raises an Exception")
    lines = [
        {**done, "version": now, "wrong": []},
        {**done, "version": "older", "wrong": [], "cell": names[1]},
        {**done, "version": now, "cell": names[2]},
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"cell": "raises')
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "chaos",
            "--resume",
            "--file",
            str(file),
            "--only",
            "raises an Exception/[ro]*/inline/asyncio/wrapped",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0] == "3 of 3 cells have run before, 2 red or on other code: they run again"
    assert ended.stdout.splitlines()[-1].endswith(": 0 red")
    assert {json.loads(line)["cell"] for line in file.read_text().splitlines()} == set(names)
