"""The lines below a tool call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.text import Text

from agent_hooks import HookRunner, ToolOutput
from agent_hooks.cli.screen.results import (
    FOLDED,
    WHOLE,
    Ended,
    hanging,
    indented,
    last_line,
    planned_diff,
    result_lines,
    shown_diff,
)
from agent_hooks.host.tools import builtin_tools
from agent_hooks.pipeline.order import JudgedCall, new_call

Judge = Callable[..., JudgedCall]


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Return a function that makes a call of a built-in tool."""
    tools = {tool.name: tool for tool in builtin_tools(cwd=str(tmp_path))}
    runner = HookRunner([], cwd=str(tmp_path))
    return lambda name, **input: new_call(tools[name], "1", input, runner=runner)


def lines(call: JudgedCall, output: ToolOutput, planned: str = "") -> list[str]:
    """Return the lines below a call."""
    ended = Ended.of(call, output)
    return [line.plain for line in result_lines(ended, shown_diff(ended, planned))]


def test_the_first_lines_of_an_output_are_shown_with_the_number_of_the_others(judged: Judge) -> None:
    """One more line stands in the place of the note about it; a failure also shows its last line."""
    call = judged("bash", command="seq 9")
    seq = [*map(str, range(1, 10))]
    assert lines(call, ToolOutput("\n".join(seq))) == [*seq[: FOLDED.output], "… 4 more lines (Ctrl-O)"]
    assert lines(call, ToolOutput("\n".join(seq[:6]))) == seq[:6]
    failed = ToolOutput("\n".join([*seq, "[exit code 3]"]), is_error=True)
    assert lines(call, failed) == [*seq[: FOLDED.output], "… 4 more lines (Ctrl-O)", "[exit code 3]"]
    assert lines(judged("read", path="a"), ToolOutput("one\ntwo")) == []


def test_without_limits_a_call_has_all_its_lines(judged: Judge) -> None:
    """Also a file that was read, and a line of any length."""
    text = "\n".join([*map(str, range(1, 100)), "x" * 1000])
    for name in ("bash", "read"):
        ended = Ended.of(judged(name, **{"bash": {"command": "x"}, "read": {"path": "a"}}[name]), ToolOutput(text))
        assert "\n".join(line.plain for line in result_lines(ended, "", WHOLE)) == text


def test_an_edit_and_a_write_are_shown_as_a_diff(judged: Judge, tmp_path: Path) -> None:
    """The file as it was, and as the call leaves it; a removed line that looks like a head of a diff is in it."""
    (tmp_path / "a.sql").write_text("-- old\none\n")
    call = judged("write", path="a.sql", content="one\ntwo\n")
    planned = planned_diff(call)
    assert lines(call, ToolOutput("wrote"), planned) == ["@@ -1,2 +1,2 @@", "--- old", " one", "+two"]
    assert lines(call, ToolOutput("no room", is_error=True), planned) == ["no room"]
    edit = judged("edit", path="a.sql", oldText="one", newText="two")
    assert planned_diff(edit) == ""
    assert lines(edit, ToolOutput("--- a.sql\n+++ a.sql\n@@ -1 +1 @@\n-one\n+two")) == ["@@ -1 +1 @@", "-one", "+two"]


def test_output_that_is_huge_binary_or_hostile_is_cut_and_harmless(judged: Judge) -> None:
    """A line of 10 MB, bytes of all kinds, and escapes; letters from right to left stay as they are."""
    call = judged("bash", command="x")
    (line,) = lines(call, ToolOutput("x" * 10_000_000))
    assert line.startswith("xxx")
    assert line.endswith("… 9,999,600 more characters")
    binary = bytes(range(256)).decode("latin-1").replace("\n", "")
    for shown in lines(call, ToolOutput(f"{binary}\n\x1b[2J\x1b]0;t\x07\n\u202eabc")):
        assert all(char.isprintable() or char == "\t" for char in shown.replace("\xa0", " ").replace("\xad", "")), shown
    assert lines(call, ToolOutput("שלום עולם")) == ["שלום עולם"]
    assert last_line("10 %\r\x1b[32m20 %\x1b[0m\n") == "20 %"
    assert last_line("\n") == ""


def test_a_tool_keeps_its_colours(judged: Judge) -> None:
    """As a style of the screen; the escape itself is never shown."""
    (line,) = result_lines(Ended.of(judged("bash", command="x"), ToolOutput("\x1b[31mred\x1b[0m plain")), "")
    assert line.plain == "red plain"
    assert [(span.start, span.end, str(span.style)) for span in line.spans] == [(0, 3, "color(1)")]


@pytest.mark.parametrize("columns", [20, 80])
def test_lines_are_broken_between_words(columns: int) -> None:
    """The parts after the first are indented; a word that is too wide is broken, and nothing is lost."""
    words = " ".join(f"word{number}" for number in range(50))
    parts = [part.plain for part in hanging(Text(f"• bash {words}"), columns, "", "  ")]
    assert max(map(len, parts)) <= columns
    assert " ".join(part.strip() for part in parts) == f"• bash {words}"
    assert "".join(part.plain.strip() for part in indented([Text("x" * 100)], columns)) == "x" * 100
