"""CI prints its tables, and the nightly script names its steps."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from checks import timings
from checks.environments import ROOT

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.a.test_b" name="test_quick" time="0.1"/>
<testcase classname="tests.a.test_b" name="test_long[x]" time="12.5"/>
</testsuite></testsuites>"""
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")


def test_the_tables_have_the_last_run_of_each_step_and_the_slowest_tests_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JSON file has the same numbers, and half a file of tests is passed over."""
    (tmp_path / "steps.tsv").write_text("check\t3\t1\ntest\t40\t0\ncheck\t5\t0\n")
    (tmp_path / "test-suite.xml").write_text(JUNIT)
    (tmp_path / "slow-half.xml").write_text(JUNIT[:60])
    timings.main(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:4]] == [["40", "test"], ["5", "check"]]
    assert lines[4].split()[:3] == ["45", "in", "all,"]
    assert [line.split()[1:] for line in lines[7:9]] == [
        ["test:", "tests/a/test_b.py::test_long[x]"],
        ["test:", "tests/a/test_b.py::test_quick"],
    ]
    written = json.loads((tmp_path / "report.json").read_text())
    assert lines[-1] == f"both tables as JSON: {tmp_path / 'report.json'}"
    assert written["seconds"] == 45
    assert written["slowest"][0] == {"step": "test", "test": "tests/a/test_b.py::test_long[x]", "seconds": 12.5}


def test_a_failed_step_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its exit code is in the JSON file too."""
    (tmp_path / "steps.tsv").write_text("check\t3\t1\n")
    timings.main(tmp_path)
    assert "     3  check  FAILED" in capsys.readouterr().out
    assert json.loads((tmp_path / "report.json").read_text())["steps"][0]["exitCode"] == 1


def test_an_unknown_step_of_the_nightly_script_is_an_error_with_the_names() -> None:
    """Nothing runs then."""
    done = subprocess.run(["bash", ".ci/nightly", "chaoss"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no step chaoss; the steps are: slow coverage page agents" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(("script", "ends"), [("run", True), ("nightly", False)])
def test_a_step_fails_at_its_first_command_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, ends: bool
) -> None:
    """`.ci/run` ends then. `.ci/nightly` runs its other steps, and fails at the end."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    text = (tmp_path / ".ci" / script).read_text()
    names = re.findall(r"^step_(\w+)\(\)", text, re.MULTILINE)
    # Each step is replaced, and so is what the scripts install and print.
    steps = "".join(f"step_{name}() {{ echo begins; false; echo went on; true; }}\n" for name in names)
    steps += "".join(f"{name}() {{ true; }}\n" for name in ("report", "programs", "make_"))
    text = text.replace("\ntrap report EXIT", f"\n{steps}trap report EXIT")
    (tmp_path / ".ci" / script).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "one"], cwd=tmp_path, check=True)
    # Where CI runs this test, the variable names the tables of CI itself.
    monkeypatch.delenv("reports", raising=False)
    done = subprocess.run(["bash", f".ci/{script}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("begins") == (1 if ends else len(names)), done.stdout
    assert "went on" not in done.stdout
