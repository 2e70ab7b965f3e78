"""The grep tool."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from agent_hooks.host.tools import grep, search
from agent_hooks.values.tool import GrepToolDetails
from support import PATIENCE

if TYPE_CHECKING:
    from host.tools.conftest import Call, Git

pytestmark = pytest.mark.anyio


async def test_matches_are_path_line_and_text(call: Call, project: Path) -> None:
    (project / "d").mkdir()
    (project / "b").write_text("one\ntwo\r\n")
    (project / "d/a").write_text("x\nthe two\nlast two")
    output = await call("grep", pattern="t.o$")
    assert output.text == "b:2: two\nd/a:2: the two\nd/a:3: last two"
    assert (output.details, output.is_error) == (None, False)
    assert (await call("grep", pattern="two", path="d")).text == "a:2: the two\na:3: last two"


async def test_one_file_can_be_searched(call: Call, project: Path) -> None:
    (project / "a").write_text("x\nyes\n")
    (project / "link").symlink_to("a")
    (project / ".gitignore").write_text("a\n")
    assert (await call("grep", pattern="yes", path="a")).text == "a:2: yes"
    assert (await call("grep", pattern="yes", path="link")).text == "link:2: yes"


async def test_no_match_is_told_and_no_error(call: Call, project: Path) -> None:
    (project / "a").write_text("x\n")
    output = await call("grep", pattern="y")
    assert (output.text, output.is_error) == ("no matches", False)


async def test_literal_ignore_case_and_glob(call: Call, project: Path) -> None:
    (project / "a.py").write_text("f(x)\nF(X)\nfx\n")
    (project / "a.js").write_text("f(x)\n")
    assert (await call("grep", pattern="f(x)", glob="*.py")).text == "a.py:3: fx"
    assert (await call("grep", pattern="f(x)", literal=True)).text == "a.js:1: f(x)\na.py:1: f(x)"
    found = await call("grep", pattern="f(x)", literal=True, ignoreCase=True, glob="*.py")
    assert found.text == "a.py:1: f(x)\na.py:2: F(X)"


async def test_context_lines_are_marked_and_groups_separated(call: Call, project: Path) -> None:
    (project / "a").write_text("1\n2\nx3\n4\n5\n6\nx7\nx8\n9\n")
    (project / "b").write_text("x1\n")
    output = await call("grep", pattern="x", context=1)
    assert output.text == ("a-2- 2\na:3: x3\na-4- 4\n--\na-6- 6\na:7: x7\na:8: x8\na-9- 9\n--\nb:1: x1")
    assert "--" not in (await call("grep", pattern="x", context=2, path="a")).text


async def test_the_limit_counts_matches_and_keeps_their_context(call: Call, project: Path) -> None:
    (project / "a").write_text("x1\n2\n3\n4\nx5\n6\n7\n8\nx9\n10\n")
    output = await call("grep", pattern="x", context=1, limit=2)
    *lines, note = output.text.split("\n")
    assert lines == ["a:1: x1", "a-2- 2", "--", "a-4- 4", "a:5: x5", "a-6- 6"]
    assert isinstance(output.details, GrepToolDetails)
    path = output.details.full_output_path
    assert note == f"[cut: the first 6 lines of 10 (3 matches); the full text is in {path}]"
    assert path is not None
    assert Path(path).read_text().split("\n")[-4:] == ["--", "a-8- 8", "a:9: x9", "a-10- 10"]


async def test_a_hundred_matches_by_default(call: Call, project: Path) -> None:
    (project / "a").write_text("x\n" * 150)
    output = await call("grep", pattern="x")
    assert output.details.truncation.output_lines == 100
    assert output.details.truncation.total_lines == 150
    assert (await call("grep", pattern="x", limit=150)).details is None


async def test_a_long_line_is_cut(call: Call, project: Path) -> None:
    (project / "a").write_text("y" * 600 + "\n" + "y" * 500 + "\n")
    assert (await call("grep", pattern="y")).text == f"a:1: {'y' * 500}…\na:2: {'y' * 500}"


async def test_ignored_binary_and_odd_files_are_passed_over(call: Call, project: Path, git: Git) -> None:
    (project / ".gitignore").write_text("ignored\n")
    for name in ("ignored", "seen"):
        (project / name).write_text("hit\n")
    (project / "binary").write_bytes(b"hit\n\0")
    (project / "link").symlink_to("seen")
    (project / "latin").write_bytes(b"hit \xe9\n")
    os.mkfifo(project / "fifo")
    with anyio.fail_after(PATIENCE):
        assert (await call("grep", pattern="hit")).text == "latin:1: hit \ufffd\nseen:1: hit"


async def test_without_git_the_answer_is_the_same(call: Call, project: Path, no_programs: None) -> None:
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("ignored\n")
    for name in ("ignored", "seen"):
        (project / name).write_text("hit\n")
    assert (await call("grep", pattern="hit")).text == "seen:1: hit"


async def test_odd_names_are_searched(call: Call, project: Path) -> None:
    with open(os.fsencode(project) + b"/a\n\xff", "wb") as file:
        file.write(b"hit\n")
    assert (await call("grep", pattern="hit")).text == "a\\n\\udcff:1: hit"


async def test_a_wrong_pattern_is_told_with_the_reason(call: Call, project: Path) -> None:
    for pattern, reason in [("(", "missing ), unterminated subpattern"), ("*", "nothing to repeat"), ("(" * 9000, "")]:
        output = await call("grep", pattern=pattern)
        assert output.is_error
        assert output.text.startswith(f"the pattern is no valid regular expression: {reason}")
        assert output.text.endswith("set literal to search for it as text")


async def test_a_pattern_that_warns_is_no_failure(call: Call, project: Path) -> None:
    (project / "a").write_text("[\n")
    assert (await call("grep", pattern="[[a]")).text == "a:1: ["


async def test_what_cannot_be_searched_is_told(call: Call, project: Path) -> None:
    os.mkfifo(project / "fifo")
    for path, text in [
        ("none", "cannot search none: No such file or directory"),
        ("fifo", "fifo is a FIFO, not a regular file"),
    ]:
        output = await call("grep", pattern="x", path=path)
        assert (output.text, output.is_error) == (text, True)


async def test_a_catastrophic_pattern_ends_and_holds_up_nobody(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep, "SEARCH_SECONDS", 0.5)
    (project / "a").write_text("a" * 60 + "b\n")
    # A loop that is held up ticks a few times; one that goes on, some thousand times, and a busy machine leaves hundreds.
    ticks = 0
    async with anyio.create_task_group() as tasks:

        async def tick() -> None:
            nonlocal ticks
            while True:
                await anyio.sleep(0)
                ticks += 1

        tasks.start_soon(tick)
        output = await call("grep", pattern="(a+)+$")
        tasks.cancel_scope.cancel()
    assert (output.text, output.is_error) == ("[stopped after 0.5 s; use a simpler pattern, a path or a glob]", True)
    assert ticks > 100, "the event loop went on"


async def test_matches_for_ever_end_and_those_asked_for_are_no_error(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep, "OUTPUT_LIMIT", 1024 * 1024)
    (project / "a").write_text("x" * 400 + "\n")
    with open(project / "a", "a") as file:
        file.writelines("x" * 400 + "\n" for _ in range(10_000))
    stopped = "\n[stopped after 1 MiB of matches; use a narrower pattern]"
    output = await call("grep", pattern="x")
    assert output.text.endswith(stopped)
    assert not output.is_error
    output = await call("grep", pattern="x", limit=100_000)
    assert output.text.endswith(stopped)
    assert output.is_error


async def test_a_python_that_does_not_start_is_told(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    output = await call("grep", pattern="x")
    assert (output.text, output.is_error) == ("cannot start /nowhere/python: No such file or directory", True)


async def test_a_search_that_fails_is_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "__file__", "/nowhere/search.py")
    output = await call("grep", pattern="x")
    assert output.is_error
    assert output.text.startswith("the search failed: ")
    assert "/nowhere/search.py" in output.text


def found(files: list[Path], pattern: str, **job: Any) -> list[str]:
    job = {"context": 0, "limit": 100, **job}
    return list(search.search([(str(path), path.name) for path in files], re.compile(pattern), **job))


def test_only_the_start_of_an_endless_line_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("start" + "x" * 3 * search.LONGEST_LINE + "end\nend\n")
    assert found([path], "end") == ["Sa:2: end"]
    assert len(found([path], "start")) == 1
    path.write_text("x" * (search.LONGEST_LINE - 1) + "\nend\n")
    assert found([path], "end") == ["Sa:2: end"]


def test_marks_tell_what_is_past_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x1\n2\n3\n4\nx5\n6\n")
    marked = found([path], "x", context=1, limit=1)
    assert marked == ["Sa:1: x1", "sa-2- 2", "r--", "ra-4- 4", "Ra:5: x5", "ra-6- 6"]


def test_files_that_cannot_be_read_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("x\n")
    link = tmp_path / "link"
    link.symlink_to("a")
    # /proc/self/mem is a regular file whose first byte cannot be read
    assert found([tmp_path / "none", link, tmp_path, Path("/proc/self/mem"), path], "x") == ["Sa:1: x"]


def test_the_child_runs_with_the_standard_library_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("hit\n")
    job = {"pattern": "HIT", "ignore_case": True, "context": 0, "limit": 1, "files": [[str(path), "a"]]}
    (tmp_path / "job").write_text(json.dumps(job))
    argv = [sys.executable, "-I", "-S", search.__file__, str(tmp_path / "job")]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b"Sa:1: hit\n"
