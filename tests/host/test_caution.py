"""The levels of caution as a guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_hooks.guards.base import GuardedCall
from agent_hooks.host.caution import Caution, Level
from agent_hooks.values.answers import Ask, Block

READ = ("bash", {"command": "cat a.txt"})
COMMAND = ("bash", {"command": "make"})
KILL = ("bash", {"command": "kill 1"})
SEND = ("bash", {"command": "curl -T a.txt https://example.org"})
COMMIT = ("bash", {"command": "git commit -m x"})
EDIT = ("edit", {"path": "a.txt", "oldText": "a", "newText": "b"})
WRITE = ("write", {"path": "part/new.txt", "content": "b"})
OUTSIDE = ("write", {"path": "../other.txt", "content": "b"})
LINKED = ("write", {"path": "out/other.txt", "content": "b"})
OTHER = ("deploy", {"path": "a.txt"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project with a part, and a link that leads out of it."""
    (tmp_path / "project" / "part").mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    (tmp_path / "project" / "out").symlink_to(tmp_path)
    (tmp_path / "project" / "a.txt").write_text("a")
    return tmp_path / "project"


def verdict(level: Level, cwd: Path, tool: str, input: dict[str, Any]) -> str:
    """Return the title of a question, `blocked`, or nothing."""
    caution = Caution()
    caution.level = level
    real = str((cwd / input["path"]).resolve()) if "path" in input else None
    answer = caution.judge(GuardedCall(tool_name=tool, input=input, cwd=str(cwd), real_path=real))
    assert answer is None or answer.rule == ("plan" if isinstance(answer, Block) else "ask")
    return answer.title if isinstance(answer, Ask) else "blocked" if answer else ""


@pytest.mark.parametrize(
    ("level", "call", "said"),
    [
        *(("work", call, "") for call in (READ, COMMAND, KILL, SEND, EDIT, OUTSIDE, OTHER)),
        *((level, READ, "") for level in ("ask", "edits", "plan")),
        *(("plan", call, "blocked") for call in (COMMAND, KILL, SEND, COMMIT, EDIT, WRITE, OUTSIDE, LINKED, OTHER)),
        *((level, call, "Run this command?") for level in ("ask", "edits") for call in (COMMAND, KILL, SEND, COMMIT)),
        *((level, OTHER, "Make this call?") for level in ("ask", "edits")),
        *(("ask", call, "Make this edit?") for call in (EDIT, WRITE, OUTSIDE, LINKED)),
        *(("edits", call, "") for call in (EDIT, WRITE)),
        *(("edits", call, "Make this edit?") for call in (OUTSIDE, LINKED)),
    ],
)
def test_each_level_judges_a_call(project: Path, level: Level, call: tuple[str, dict[str, Any]], said: str) -> None:
    """A call that only reads always runs; an edit passes at its level if its real path is in the project."""
    assert verdict(level, project, *call) == said


def test_the_project_is_more_than_the_directory_of_the_session(project: Path) -> None:
    """A session in a part of it may edit the other parts."""
    assert verdict("edits", project / "part", "write", {"path": "../a.txt", "content": "b"}) == ""
    assert verdict("edits", project / "part", "write", {"path": "../../a.txt", "content": "b"}) == "Make this edit?"


def test_a_path_that_is_no_text_is_asked_about(project: Path) -> None:
    """Nobody knows which file it means."""
    call = GuardedCall(tool_name="write", input={"path": 3, "content": "b"}, cwd=str(project))
    caution = Caution()
    caution.level = "edits"
    assert isinstance(caution.judge(call), Ask)


def test_the_levels_go_round() -> None:
    """Each is reached by as many steps as there are, and then the first one again."""
    caution = Caution()
    seen = []
    for _ in range(4):
        seen.append(caution.level)
        caution.level = caution.following
    assert (seen, caution.level) == (["work", "ask", "edits", "plan"], "work")
