"""command_intercept.yaml in the real Claude Code: the directories that its searches leave out."""

from __future__ import annotations

import pytest

from clients.claude_seat import Calls, ClaudeSeat
from model_server import Say

pytestmark = pytest.mark.client


EXCLUDE = """
version: 1
tools:
  Glob:
    transformers:
      - name: exclude_directories
        config: {patterns: [.venv, "*.egg-info"]}
  Grep:
    auto_allow: true
    transformers:
      - name: exclude_directories
        config: {patterns: [.venv, "*.egg-info"]}
      - name: add_default_excludes
        config: {glob_excludes: ["*.min.py"]}
"""


@pytest.fixture
def crowded(claude: ClaudeSeat) -> ClaudeSeat:
    """Return a project with directories that are to be left out."""
    for path in ("a.py", "sub/b.py", ".venv/lib/v.py", "sub/.venv/w.py", "x.egg-info/x.py", "c.min.py"):
        file = claude.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import os\n")
    (claude.project / ".agent").mkdir()
    (claude.project / ".agent/command_intercept.yaml").write_text(EXCLUDE)
    claude.install()
    return claude


def test_glob_really_leaves_directories_out(crowded: ClaudeSeat) -> None:
    """The result is filtered, because Glob has no argument for it; the model reads how many lines are missing."""
    run = crowded.play(Say(calls=[("Glob", {"pattern": "**/*.py"})]), Say("done"))
    assert sorted(run.results[0].text.splitlines()) == ["a.py", "c.min.py", "sub/b.py"]
    assert "[exclude_directories took 3 lines out of this result of find: .venv, *.egg-info]" in run.context


@pytest.mark.parametrize("given", [{}, {"glob": "*.{py,js}"}], ids=["no glob", "a glob"])
def test_grep_really_leaves_directories_out(given: dict[str, str], crowded: ClaudeSeat) -> None:
    """The input is changed, so that its limits count only the wanted lines; the rewritten call needs no permission."""
    grep = {"pattern": "import", **given}
    calls: Calls = [
        ("Grep", grep),
        ("Grep", {**grep, "output_mode": "content", "head_limit": 2}),
        ("Grep", {**grep, "output_mode": "count"}),
        ("Grep", {**grep, "path": str(crowded.project / "sub/.venv")}),
    ]
    run = crowded.play(*(Say(calls=[call]) for call in calls), Say("done"), allow=(), args=["--tools", "Grep"])
    files, lines, counts, asked = (sorted(result.text.splitlines()) for result in run.results)
    assert files == ["Found 2 files", "a.py", "sub/b.py"]
    assert lines == ["a.py:1:import os", "sub/b.py:1:import os"]
    assert counts == ["", "Found 2 total occurrences across 2 files.", "a.py:1", "sub/b.py:1"]
    assert asked == ["No files found"]
    assert "[exclude_directories changed this call of grep: exclude=.venv/, *.egg-info/]" in run.context


def test_only_auto_allow_spares_a_call_the_prompt(crowded: ClaudeSeat) -> None:
    """No person is present to answer the prompt."""
    file = crowded.project / ".agent/command_intercept.yaml"
    default = """
  Write:
    auto_allow: ALLOW
    transformers:
      - name: default_args
        config: {append: {content: "\\n"}}
"""
    for allow in ("false", "true"):
        file.write_text(EXCLUDE + default.replace("ALLOW", allow))
        call = ("Write", {"file_path": str(crowded.project / f"{allow}.txt"), "content": "text"})
        run = crowded.play(Say(calls=[call]), Say("done"), allow=())
        assert run.results[0].is_error is (allow == "false")
    assert not (crowded.project / "false.txt").exists()
    assert (crowded.project / "true.txt").read_text() == "text\n"
