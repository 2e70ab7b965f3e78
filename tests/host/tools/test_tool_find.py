"""The find tool: with git, and with our own walk."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.host.tools import builtin_tools, find
from agent_hooks.host.tools.listing import glob, list_files
from agent_hooks.values.tool import FindToolDetails
from support import PATIENCE, examples

if TYPE_CHECKING:
    from host.tools.conftest import Call, Git

pytestmark = pytest.mark.anyio


def put(root: Path, name: str, text: str = "") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(params=["git", "walk in a work tree", "walk without a repository"])
def way(request: pytest.FixtureRequest, project: Path) -> str:
    """Let git list the files, or our own walk: git is missing, or there is no repository."""
    if request.param != "walk without a repository":
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    if request.param == "walk in a work tree":
        request.getfixturevalue("no_programs")
    return str(request.param)


async def test_results_are_sorted_paths_below_the_directory(call: Call, project: Path, way: str) -> None:
    for name in ("b.py", "a/z.py", "a/b/c.py", "a/x.txt", ".hidden/d.py"):
        put(project, name)
    output = await call("find", pattern="*.py")
    assert (output.text, output.details, output.is_error) == (".hidden/d.py\na/b/c.py\na/z.py\nb.py", None, False)
    assert (await call("find", pattern="*.py", path="a")).text == "b/c.py\nz.py"
    assert (await call("find", pattern="*.js")).text == "no files found"


async def test_gitignore_is_respected(call: Call, project: Path, way: str) -> None:
    put(project, ".gitignore", "# comment\n\n*.log\n!keep.log\n/top\nbuild/\ndoc/**/*.tmp\n!\n")
    put(project, "inner/.gitignore", "secret\n!special.log\n")
    for name in (
        "a.log", "keep.log", "top", "inner/top", "build/x", "inner/build/x", "inner/secret", "secret", "doc/a/b/c.tmp",
        "doc/d", "inner/special.log",
    ):  # fmt: skip
        put(project, name)
    output = await call("find", pattern="**")
    assert output.text.split("\n") == [
        ".gitignore", "doc/d", "inner/.gitignore", "inner/special.log", "inner/top", "keep.log", "secret",
    ]  # fmt: skip


async def test_a_directory_below_obeys_the_files_above(call: Call, project: Path, git: Git, tmp_path: Path) -> None:
    put(project, ".gitignore", "*.log\nignored/\n")
    for name in ("sub/deep/a.log", "sub/deep/a", "ignored/a.log", "ignored/b"):
        put(project, name)
    for _ in range(2):
        assert (await call("find", pattern="*", path="sub/deep")).text == "a"
        assert (await call("find", pattern="*", path="ignored")).text == "a.log\nb", "it was asked for itself"
        os.environ["PATH"] = str(tmp_path / "nothing")


@pytest.fixture(autouse=True)
def same_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put PATH back after each test."""
    monkeypatch.setenv("PATH", os.environ["PATH"])


async def test_without_a_repository_files_above_do_not_count(call: Call, project: Path) -> None:
    put(project, ".gitignore", "*\n")
    put(project, "sub/a")
    assert (await call("find", pattern="*", path="sub")).text == "a"


async def test_files_in_the_index_count_unless_they_are_gone(call: Call, project: Path, git: Git) -> None:
    put(project, ".gitignore", "*.log\n")
    for name in ("gone", "forced.log", "there"):
        put(project, name)
    git("add", "-f", ".")
    (project / "gone").unlink()
    assert (await call("find", pattern="*")).text == ".gitignore\nforced.log\nthere"


async def test_a_repository_inside_is_searched_by_its_own_rules(call: Call, project: Path, git: Git) -> None:
    inner = project / "vendor" / "inner"
    put(inner, ".gitignore", "*.log\n")
    put(inner, "a.log")
    put(inner, "a")
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True)
    assert (await call("find", pattern="a*")).text == "vendor/inner/a"


async def test_links_are_listed_and_not_followed(call: Call, project: Path, way: str) -> None:
    put(project, "dir/a")
    (project / "loop").symlink_to(".")
    (project / "dir/dangling").symlink_to("nowhere")
    os.mkfifo(project / "fifo")
    assert (await call("find", pattern="*")).text == "dir/a\ndir/dangling\nloop"


async def test_odd_names_are_found_and_shown_on_one_line(call: Call, project: Path, way: str) -> None:
    put(project, "a\nb")
    put(project, "größe")
    with open(os.fsencode(project) + b"/\xff", "wb"):
        pass
    assert (await call("find", pattern="*")).text == "a\\nb\ngröße\n\\udcff"


async def test_odd_gitignore_files_do_no_harm(call: Call, project: Path) -> None:
    put(project, "a")
    os.mkfifo(project / ".gitignore")
    (project / "sub" / ".gitignore").mkdir(parents=True)
    put(project, "sub/b")
    with anyio.fail_after(PATIENCE):
        assert (await call("find", pattern="*")).text == "a\nsub/b"


async def test_callers_git_settings_and_the_repositorys_programs_have_no_say(
    call: Call, project: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, "a")
    git("config", "core.fsmonitor", f"touch {project}/ran; false")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert (await call("find", pattern="*")).text == "a"
    assert not (project / "ran").exists()


async def test_a_broken_git_is_as_none(call: Call, project: Path, tmp_path: Path) -> None:
    put(project, "a")
    script = '#!/bin/sh\ncase "$*" in *check-ignore*) exit 1;; *) echo b; exit 1;; esac\n'
    put(tmp_path, "bin/git", script)
    (tmp_path / "bin/git").chmod(0o755)
    os.environ["PATH"] = str(tmp_path / "bin")
    assert (await call("find", pattern="*")).text == "a"


async def test_what_cannot_be_read_is_left_out(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, "a")
    put(project, "locked/b")
    scandir = os.scandir

    def locked(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", locked)
    assert (await call("find", pattern="*")).text == "a"


async def test_what_is_no_directory_is_refused(call: Call, project: Path) -> None:
    put(project, "file")
    for path, text in [
        ("none", "cannot search none: No such file or directory"),
        ("file", "file is not a directory; give the directory to search"),
    ]:
        output = await call("find", pattern="*", path=path)
        assert (output.text, output.is_error) == (text, True)


async def test_the_limit_cuts_and_the_full_text_is_kept(call: Call, project: Path) -> None:
    for n in range(1001):
        put(project, f"{n:04}")
    output = await call("find", pattern="*")
    assert isinstance(output.details, FindToolDetails)
    path = output.details.full_output_path
    assert output.text.endswith(f"0999\n[cut: the first 1000 lines of 1001 (1001 files); the full text is in {path}]")
    assert path is not None
    assert len(Path(path).read_text().split("\n")) == 1001
    assert (await call("find", pattern="*", limit=1001)).details is None


async def test_a_search_that_takes_too_long_ends(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, "a")
    monkeypatch.setattr(find, "SEARCH_SECONDS", 0.0)
    output = await call("find", pattern="*")
    assert (output.text, output.is_error) == ("find took more than 0 s in .; search a smaller directory", True)


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("*.py", ["a.py", "b/c/a.py", ".py"], ["a.pyc", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["a.py", "x/src/a.py"]),
        ("**/x", ["x", "a/x", "a/b/x"], ["ax", "x/a"]),
        ("src/**", ["src/a", "src/a/b"], ["src2/a"]),
        ("**", ["a", "a/b"], []),
        ("./a/b", ["a/b"], ["b"]),
        ("/a", ["a"], ["b/a"]),
        ("[ab]?", ["ax", "d/by"], ["cx", "a"]),
        ("*.{js,ts}", ["a.js", "b.ts"], ["a.{js,ts}", "a.jsx"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"], ["b", "bcd"]),
        ("{a}", ["{a}"], ["a"]),
        ("a.b", ["a.b"], ["axb", "a.b\n"]),
    ],
)
def test_a_glob_fits_its_paths_and_no_others(pattern: str, fitting: list[str], others: list[str]) -> None:
    fits = glob(pattern)
    assert [path for path in fitting + others if fits(path)] == fitting


def test_no_glob_is_slow() -> None:
    assert not glob("*a" * 50 + "b")("a" * 250)
    assert not glob("**/" * 50 + "b")("a/" * 200 + "a")


async def test_a_glob_with_too_many_braces_is_refused(call: Call) -> None:
    output = await call("find", pattern="{a,b}" * 20)
    assert output.is_error
    assert "more than 1000 alternatives" in output.text


names = st.sampled_from(["a", "b", "ab", "a.c"])
lines = st.lists(
    st.tuples(
        st.sampled_from(["", "!"]),
        st.sampled_from(["", "/", "**/"]),
        st.lists(st.sampled_from(["a", "b", "a*", "*.c", "?", "**", "[ab]"]), min_size=1, max_size=3).map("/".join),
        st.sampled_from(["", "/", "/**", "/*"]),
    )
    .map("".join)
    # A known difference: after `!**`, a plain name excludes no directory for pathspec.
    .filter(lambda line: not (line[0] == "!" and set(line[1:]) <= {"*", "/"})),
    max_size=4,
)
trees = st.sets(st.lists(names, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8)


@examples(25)
@given(trees, st.dictionaries(st.sampled_from(["", "a/", "b/"]), lines, max_size=2))
def test_our_own_walk_lists_what_git_lists(
    tmp_path_factory: pytest.TempPathFactory, tree: set[str], ignores: dict[str, list[str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    try:
        for name in tree | {f"{directory}.gitignore" for directory in ignores}:
            directory = name.rpartition("/")[0] + "/" if "/" in name else ""
            if not any((root / part).is_file() for part in Path(name).parents) and not (root / name).exists():
                put(root, name, "\n".join(ignores[directory]) if name.endswith(".gitignore") else "")
        walked = anyio.run(list_files, str(root))
        subprocess.run(["git", "init", "-q", "--template="], cwd=root, check=True)
        assert anyio.run(list_files, str(root)) == walked
    finally:
        shutil.rmtree(root)


# ---- exclude ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exclude", "found"),
    [
        ([], ["a/b/c.py", "a/b/d/c.py", "c.py", "d", "x.min.js"]),
        (["d/"], ["a/b/c.py", "c.py", "d", "x.min.js"]),
        (["d"], ["a/b/c.py", "c.py", "x.min.js"]),
        (["a/b"], ["c.py", "d", "x.min.js"]),
        (["a/*/d", "*.min.*"], ["a/b/c.py", "c.py", "d"]),
        (["*.{py,js}"], ["d"]),
        (["b/"], ["c.py", "d", "x.min.js"]),
        (["/"], ["a/b/c.py", "a/b/d/c.py", "c.py", "d", "x.min.js"]),
    ],
)
async def test_exclude_leaves_out_what_fits_and_says_how_much(
    tmp_path: Path, exclude: list[str], found: list[str]
) -> None:
    """Files and directories by name, or by path with a `/` inside; with one at the end, directories only."""
    for name in ("a/b/c.py", "a/b/d/c.py", "c.py", "d", "x.min.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    [tool] = [tool for tool in builtin_tools(cwd=str(tmp_path)) if tool.name == "find"]
    output = await tool.execute("1", {"pattern": "*", "exclude": exclude})
    missing = 5 - len(found)
    note = [f"[{missing} file{'' if missing == 1 else 's'} left out by exclude]"] if missing else []
    assert output.text.splitlines() == [*found, *note]


async def test_a_directory_that_is_excluded_stays_so_when_it_is_asked_for(tmp_path: Path) -> None:
    """Its path from the working directory is matched; the names above the working directory are not."""
    deep = tmp_path / "out" / "work" / "out" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "f").touch()
    [tool] = [tool for tool in builtin_tools(cwd=str(tmp_path / "out" / "work")) if tool.name == "find"]
    for path in ("out", str(tmp_path / "out" / "work" / "out")):
        output = await tool.execute("1", {"pattern": "f", "path": path, "exclude": ["out/"]})
        assert output.text.splitlines() == ["no files found", "[1 file left out by exclude]"]
    output = await tool.execute("1", {"pattern": "f", "exclude": ["work/"]})
    assert output.text.endswith("/f")
