"""The table of the built-in tools, and their common parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agent_hooks.errors import printable
from agent_hooks.host.tools import builtin_tools
from agent_hooks.host.tools.base import cut_head, cut_tail, lines_of
from agent_hooks.values.tool import Tool

texts = st.lists(st.sampled_from(["\n", "a", "é", "€", "😀", "\r", "line of words"]), max_size=60).map("".join)
limits = st.tuples(st.integers(1, 12), st.integers(4, 60))


@given(texts, limits)
def test_a_head_is_within_the_limits_and_a_prefix_of_the_text(text: str, limit: tuple[int, int]) -> None:
    kept, cut = cut_head(text, *limit)
    assert text.startswith(kept)
    check_numbers(text, kept, cut, limit)
    if cut and cut.output_lines < cut.total_lines and not kept.endswith("\n"):
        # Only a single line that is too long is cut inside.
        assert cut.output_lines == 1


@given(texts, limits)
def test_a_tail_is_within_the_limits_and_a_suffix_of_the_text(text: str, limit: tuple[int, int]) -> None:
    kept, cut = cut_tail(text, *limit)
    assert text.endswith(kept)
    check_numbers(text, kept, cut, limit)
    before = text[: len(text) - len(kept)]
    if before and not before.endswith("\n"):
        assert lines_of(kept) == 1


def check_numbers(text: str, kept: str, cut: object, limit: tuple[int, int]) -> None:
    lines, size = lines_of(text), len(text.encode())
    assert lines_of(kept) <= limit[0]
    assert len(kept.encode()) <= limit[1]
    if lines <= limit[0] and size <= limit[1]:
        assert kept == text
        assert cut is None
        return
    assert kept, "something always fits"
    assert cut is not None
    assert (cut.truncated, cut.total_lines, cut.total_bytes) == (True, lines, size)  # type: ignore[attr-defined]
    assert (cut.output_lines, cut.output_bytes) == (lines_of(kept), len(kept.encode()))  # type: ignore[attr-defined]
    assert cut.truncated_by == ("bytes" if size > limit[1] and cut.output_lines < limit[0] else cut.truncated_by)  # type: ignore[attr-defined]


@given(st.text(alphabet="ab\n", max_size=40), limits)
def test_lines_that_fit_are_all_kept(text: str, limit: tuple[int, int]) -> None:
    head, _ = cut_head(text, limit[0], 1000)
    tail, _ = cut_tail(text, limit[0], 1000)
    assert lines_of(head) == lines_of(tail) == min(lines_of(text), limit[0])


def test_the_limit_that_cut_is_named() -> None:
    for cut in (cut_head, cut_tail):
        _, by_lines = cut("a\n" * 10, 5, 100)
        _, by_bytes = cut("a\n" * 10, 9, 10)
        assert by_lines is not None
        assert by_lines.truncated_by == "lines"
        assert by_bytes is not None
        assert by_bytes.truncated_by == "bytes"


def test_a_tail_keeps_a_line_that_fits_to_the_byte() -> None:
    assert cut_tail("xx\nabc", 10, 3)[0] == "abc"
    assert cut_head("abc\nxx", 10, 4)[0] == "abc\n"


def test_there_are_seven_tools_with_strict_schemas(tmp_path: Path) -> None:
    tools = builtin_tools(cwd=str(tmp_path))
    assert [tool.name for tool in tools] == ["bash", "read", "write", "edit", "ls", "find", "grep"]
    for tool in tools:
        assert isinstance(tool, Tool)
        assert tool.description
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False
        assert all(prop["description"] for prop in tool.input_schema["properties"].values())


def test_the_inputs_are_exactly_those_of_the_reference(tmp_path: Path) -> None:
    """Only `exclude`, which transformers set, comes on top."""
    inputs = {
        tool.name: (set(tool.input_schema["required"]), set(tool.input_schema["properties"]))
        for tool in builtin_tools(cwd=str(tmp_path))
    }
    assert inputs == {
        "bash": ({"command"}, {"command", "timeout"}),
        "read": ({"path"}, {"path", "offset", "limit"}),
        "write": ({"path", "content"}, {"path", "content"}),
        "edit": ({"path", "oldText", "newText"}, {"path", "oldText", "newText"}),
        "ls": (set(), {"path", "limit"}),
        "find": ({"pattern"}, {"pattern", "path", "limit", "exclude"}),
        "grep": ({"pattern"}, {"pattern", "path", "glob", "ignoreCase", "literal", "context", "limit", "exclude"}),
    }


@pytest.mark.anyio
async def test_without_a_folder_full_text_goes_to_one_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tools = {tool.name: tool for tool in builtin_tools(cwd=str(tmp_path))}
    for _ in range(2):
        output = await tools["bash"].execute("1", {"command": "seq 3000"})
        assert Path(output.details.full_output_path).read_text().splitlines()[-1] == "3000"
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("agent-hooks-")
    assert len(list(folder.iterdir())) == 2


@pytest.mark.anyio
async def test_a_full_text_that_cannot_be_kept_is_told(project: Path) -> None:
    blocked = project / "file"
    blocked.write_text("")
    tools = {tool.name: tool for tool in builtin_tools(cwd=str(project), output_directory=lambda: blocked / "below")}
    for name in ("a", "b"):
        (project / name).write_text("")
    output = await tools["ls"].execute("1", {"limit": 2})
    assert output.details.full_output_path is None
    assert "could not be kept; ask for less" in output.text
    output = await tools["bash"].execute("1", {"command": "seq 300000"})
    assert output.details.full_output_path is None
    assert "could not be kept: Not a directory" in output.text
    assert output.text.endswith("\n300000")


@pytest.mark.anyio
@pytest.mark.parametrize(("path", "reason"), [("a\0b", "NUL"), ("a\ud800", "surrogate")])
async def test_a_path_that_is_none_is_refused(tmp_path: Path, path: str, reason: str) -> None:
    for tool in builtin_tools(cwd=str(tmp_path)):
        given_input = {"path": path, "content": "", "oldText": "a", "newText": "b", "pattern": "x", "command": path}
        output = await tool.execute("1", given_input)
        assert output.is_error
        assert reason in output.text


@pytest.mark.anyio
async def test_paths_start_at_cwd_or_home(project: Path, home: Path) -> None:
    tools = {tool.name: tool for tool in builtin_tools(cwd=str(project))}
    (project / "here").write_text("here")
    (home / "there").write_text("there")
    assert (await tools["read"].execute("1", {"path": "here"})).text == "here"
    assert (await tools["read"].execute("1", {"path": "~/there"})).text == "there"
    assert (await tools["read"].execute("1", {"path": str(home / "there")})).text == "there"


def test_a_name_is_shown_on_one_line() -> None:
    assert printable("größe.txt") == "größe.txt"
    assert printable("a\nb\udcff") == "a\\nb\\udcff"
