"""The skills whose descriptions the model gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.host.instructions import LONGEST_DESCRIPTION, MOST, Skills, parted, value
from running import Command


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory with a home and a project, which has a part."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "project" / "part").mkdir(parents=True)
    return tmp_path


def skill(directory: Path, name: str, text: str) -> Path:
    """Write a skill, and return its file."""
    path = directory / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def skills(place: Path) -> Skills:
    """Return the skills of an agent in a part of the project."""
    top = place / "project"
    hide = lambda text: text.replace("s3cret", "[hidden]")  # noqa: E731
    return Skills(str(place / "home/.agent"), str(top), str(top / "part"), hide)


def test_each_skill_is_a_line_and_the_persons_come_first(place: Path) -> None:
    """Of one name, the person's counts; a value may have several lines and quotes."""
    assert skills(place).read() == []
    own = skill(place / "home/.agent", "release", '---\nname: release\ndescription: "How: to release"\n---\nsteps')
    claude = skill(
        place / "home/.claude", "review", "---\ndescription: >\n  Review it,\n  line by line.\nother: x\n---\n"
    )
    skill(place / "project/.claude", "release", "---\ndescription: theirs\n---\n")
    part = skill(place / "project/part/.agent", "part", "---\r\ndescription: of a part, with s3cret\r\n---\r\n")
    (text,) = skills(place).read()
    assert text.splitlines()[2:] == [
        f"- release: How: to release ({own})",
        f"- review: Review it, line by line. ({claude})",
        f"- part: of a part, with [hidden] ({part})",
    ]


def test_files_that_do_not_count_are_left_out(place: Path) -> None:
    """Without a description, behind a link out of the project, no plain file, with a line break in the name."""
    outside = skill(place, "outside", "---\ndescription: outside\n---\n")
    project = place / "project/.agent"
    skill(project, "none", "no head")
    skill(project, "empty", "---\nname: empty\n---\n")
    skill(project, "two\nlines", "---\ndescription: x\n---\n")
    (project / "skills/linked").symlink_to(outside.parent)
    (project / "skills/pipe").mkdir()
    os.mkfifo(project / "skills/pipe/SKILL.md")
    (project / "skills/nothing").mkdir()
    assert skills(place).read() == []
    skill(project, "long", f"---\ndescription: {'x' * 3000}\n---\n")
    (text,) = skills(place).read()
    assert len(text.splitlines()[2]) < LONGEST_DESCRIPTION + 200
    for number in range(MOST + 5):
        skill(place / "home/.agent", f"s{number}", "---\ndescription: x\n---\n")
    assert len(skills(place).read()[0].splitlines()) == MOST + 2


@given(st.text(), st.text())
def test_any_text_is_parted_into_head_and_body_without_an_error(text: str, key: str) -> None:
    """A value is one line."""
    head, _ = parted(text)
    assert "\n" not in value(head, key)
    assert parted(f"---\na: b\n---\n{text}") == ("a: b", text.strip())


def test_an_agent_reads_the_skills_of_the_person_and_does_not_write_them(command: Command, home: Path) -> None:
    """They reach each later session."""
    path = skill(home / ".agent", "release", "---\ndescription: x\n---\nthe steps")
    assert "the steps" in command("run", "--no-session", f"@read {path}").stdout
    done = command("run", "--no-session", f"@bash echo x >> {path}")
    assert "blocked" in done.stdout
    assert path.read_text().endswith("the steps")
