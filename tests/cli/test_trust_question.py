"""The text of the question: nothing in it hides a line of code."""

from __future__ import annotations

from pathlib import Path

from agent_hooks.cli.screen.trust_question import MOST_LINES, Look, is_large, set_text
from agent_hooks.trust.manifest import ProjectSet, read_set


def project_set(project: Path, text: str) -> ProjectSet:
    """Return the set of a project with one hook."""
    hook = project / ".agent" / "hooks" / "hook.py"
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(text)
    return read_set(str(project))


def test_many_blank_lines_are_counted_instead_of_shown(tmp_path: Path) -> None:
    """Otherwise the code between them would leave the screen."""
    found = project_set(tmp_path, "first = 1\n" + " \n" * 500 + "last = 2\n")
    shown = list(set_text(found, None, Look()))
    assert "    1| first = 1" in shown
    assert "    2| (500 blank lines)" in shown
    assert "  502| last = 2" in shown
    assert len(shown) < 20
    before = project_set(tmp_path, "first = 1\n")
    changes = list(set_text(found, {file.name: file.data for file in before.files}, Look()))
    assert "    +| (500 blank lines)" in changes
    assert "    +| last = 2" in changes


def test_a_few_blank_lines_are_shown(tmp_path: Path) -> None:
    """Code keeps its shape."""
    shown = list(set_text(project_set(tmp_path, "a = 1\n\n\nb = 2\n"), None, Look()))
    assert not [line for line in shown if "blank" in line]
    assert "    4| b = 2" in shown


def test_a_set_with_very_many_lines_is_approved_by_name(tmp_path: Path) -> None:
    """A person cannot read them at once."""
    assert not is_large(project_set(tmp_path, "\n" * MOST_LINES))
    assert is_large(project_set(tmp_path, "\n" * (MOST_LINES + 1)))
