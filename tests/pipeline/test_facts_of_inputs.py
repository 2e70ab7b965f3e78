"""The steps read odd inputs and files without raising."""

from __future__ import annotations

from pathlib import Path

from agent_hooks.pipeline.guarding import _commands
from agent_hooks.pipeline.marking import _may_hold_marks, _text_of


def test_a_command_that_cannot_be_read_has_no_text() -> None:
    """The guards themselves ask about it."""
    assert _commands("bash", {"command": 5}) == ""


def test_a_mark_is_found_in_any_value_of_an_input() -> None:
    """Numbers and other values hold none."""
    assert _may_hold_marks({"a": [1, {"b": "x [redacted github-token]"}]})
    assert not _may_hold_marks({"a": [1, None, "text"]})


def test_a_file_that_cannot_be_read_has_no_text(tmp_path: Path) -> None:
    """A directory, and a file whose reading fails."""
    assert _text_of(str(tmp_path)) == ""
    assert _text_of("/proc/self/mem") == ""
