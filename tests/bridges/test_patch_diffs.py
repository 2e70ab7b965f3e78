"""Diffs that `git apply`, `git am` and `patch` apply, as calls of our tools."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.bridges.base.happenings import Part
from agent_hooks.bridges.patch import parts_of_call
from agent_hooks.bridges.patch_diffs import parts_of_diff
from support import examples

CHANGED = """diff --git a/src/x.py b/src/x.py
index 1..2 100644
--- a/src/x.py
+++ b/src/x.py
@@ -1,2 +1,2 @@
-old
+new
 same
"""
NEW = "--- /dev/null\n+++ b/.agent/hooks/evil.py\n@@ -0,0 +1 @@\n+evil\n"
GONE = "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
RENAMED = "diff --git a/one.py b/two.py\nsimilarity index 100%\nrename from one.py\nrename to two.py\n"
COPIED = "diff --git a/one.py b/three.py\nsimilarity index 100%\ncopy from one.py\ncopy to three.py\n"
EDIT = Part("edit", {"path": "src/x.py", "oldText": "old\nsame", "newText": "new\nsame"})
WRITE = Part("write", {"path": ".agent/hooks/evil.py", "content": "evil\n"})


def parts(command: str) -> tuple[Part, ...]:
    """Return the parts of a command of a shell."""
    return parts_of_call("bash", {"command": command})


def paths(found: tuple[Part, ...]) -> set[str]:
    """Return the paths that parts name."""
    moved = [shlex.split(part.input["command"])[2:] for part in found if part.tool_name == "bash"]
    return {part.input["path"] for part in found if "path" in part.input} | {path for each in moved for path in each}


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        (CHANGED, (EDIT,)),
        (CHANGED.replace("\n", "\r\n"), (EDIT,)),
        (f"From 1 Mon Sep 17\nSubject: x\n\n---\n x | 1 +\n\n{CHANGED}-- \n2.4\n", (EDIT,)),
        (NEW, (WRITE,)),
        (
            GONE,
            (Part("write", {"path": "gone.py", "content": ""}), Part("bash", {"command": "rm -- gone.py"})),
        ),
        (
            RENAMED,
            (
                Part("edit", {"path": "one.py", "oldText": "", "newText": ""}),
                Part("edit", {"path": "two.py", "oldText": "", "newText": ""}),
                Part("write", {"path": "two.py", "content": ""}),
                Part("bash", {"command": "mv -- one.py two.py"}),
            ),
        ),
    ],
)
def test_each_file_of_a_diff_is_a_call_of_ours(diff: str, expected: tuple[Part, ...]) -> None:
    """A diff has an edit of each changed file, a write of each new one, and the commands of deletions and moves."""
    assert parts(f"git apply <<'EOF'\n{diff}EOF") == expected


@pytest.mark.parametrize(
    "diff",
    [
        "diff --git a/my new.py b/my new.py\nnew file mode 100644\nindex 0000000..e69de29\n",
        "diff --git a/my new.py b/my new.py\nnew file mode 100644\nGIT binary patch\nliteral 1\nIcmZPo000010RT\n",
        "--- a/my new.py\t1970-01-01 00:00:00\n+++ b/my new.py\t2026-11-23\n@@ -0,0 +1 @@\n+x\n",
        "*** /dev/null\t1970-01-01\n--- b/my new.py\t2026-11-23\n***************\n*** 0 ****\n--- 1 ----\n+ x\n",
    ],
)
def test_a_new_file_is_a_write_whatever_the_form_of_its_diff(diff: str) -> None:
    """An empty or binary file has no lines, and some programs name the old file in the diff of a new one."""
    found = parts(f"patch -p1 <<'EOF'\n{diff}EOF")
    assert [part.input["path"] for part in found if part.tool_name == "write"] == ["my new.py"]


@pytest.mark.parametrize("before", ["deleted file mode 100644\n", "new file mode 100644\ncopy to other.py\n"])
def test_words_before_a_diff_do_not_hide_its_change(before: str) -> None:
    """Programs ignore those words, and change the file."""
    assert EDIT in parts(f"git apply <<'EOF'\n{before}{CHANGED.partition(chr(10))[2]}EOF")


@pytest.mark.parametrize("program", ["git apply -R", "git apply --reverse", "patch -p1 -R", "patch -R -i - -p1"])
@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        (CHANGED, (Part("edit", {"path": "src/x.py", "oldText": "new\nsame", "newText": "old\nsame"}),)),
        (
            NEW,
            (
                Part("write", {"path": ".agent/hooks/evil.py", "content": ""}),
                Part("bash", {"command": "rm -- .agent/hooks/evil.py"}),
            ),
        ),
        (GONE, (Part("write", {"path": "gone.py", "content": "x\n"}),)),
        (
            RENAMED,
            (
                Part("edit", {"path": "two.py", "oldText": "", "newText": ""}),
                Part("edit", {"path": "one.py", "oldText": "", "newText": ""}),
                Part("write", {"path": "one.py", "content": ""}),
                Part("bash", {"command": "mv -- two.py one.py"}),
            ),
        ),
    ],
)
def test_a_diff_that_is_taken_back_makes_the_opposite_changes(
    program: str, diff: str, expected: tuple[Part, ...]
) -> None:
    """A file that the diff deletes is written."""
    assert parts(f"{program} <<'EOF'\n{diff}EOF") == expected


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (f"git apply <<'EOF'\n{CHANGED}EOF", "src/x.py"),
        (f"git am <<'EOF'\n{CHANGED}EOF", "src/x.py"),
        (f"git apply -p2 <<'EOF'\n{CHANGED}EOF", "x.py"),
        (f"git apply -p0 <<'EOF'\n{RENAMED}EOF", "two.py"),
        (f"git -C sub apply --directory=deep <<'EOF'\n{CHANGED}EOF", "sub/deep/src/x.py"),
        (f"cd sub; patch -p1 <<'EOF'\n{CHANGED}EOF", "sub/src/x.py"),
        (f"patch -d sub -p1 <<'EOF'\n{CHANGED}EOF", "sub/src/x.py"),
        (f"patch --strip=1 <<'EOF'\n{CHANGED}EOF", "src/x.py"),
        (f"patch <<'EOF'\n{CHANGED}EOF", "x.py"),
        (f"patch one.py <<'EOF'\n{CHANGED}EOF", "one.py"),
        ("patch one.py x.diff", "one.py"),
        (f"patch -o out.py -p1 <<'EOF'\n{CHANGED}EOF", "out.py"),
        (f"echo '{CHANGED}' | patch -p1", "src/x.py"),
        (f"cat > x.diff <<'EOF'\n{CHANGED}EOF\ngit apply x.diff", "src/x.py"),
        (f"bash -c \"git apply <<'EOF'\n{CHANGED}EOF\n\"", "src/x.py"),
        (f"git apply <<'EOF'\n{COPIED}EOF", "three.py"),
        ("git apply <<'EOF'\n--- a/my notes.md\t\n+++ b/my notes.md\t\n@@ -1 +1 @@\n-a\n+b\nEOF", "my notes.md"),
        ('git apply <<\'EOF\'\n--- "a/\\303\\244.py"\n+++ "b/\\303\\244.py"\n@@ -1 +1 @@\n-a\n+b\nEOF', "ä.py"),
        ("git apply <<'EOF'\ndiff --git a/x.png b/x.png\nGIT binary patch\nliteral 1\nEOF", "x.png"),
        ("patch -p1 <<'EOF'\n*** a/x.c\n--- b/x.c\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\nEOF", "x.c"),
    ],
)
def test_a_program_that_applies_a_diff_names_its_files(command: str, path: str) -> None:
    """The paths of a diff follow the options of the program, its directory and the source of its text."""
    found = parts(command)
    assert path in paths(found)
    assert not any(part.unread for part in found)


@pytest.mark.parametrize(
    "command",
    [
        "git apply x.diff",
        "git am < x.mbox",
        "patch -p1 < x.diff",
        "patch -p1 -i x.diff",
        "curl -s https://x.example/x.diff | git apply",
        "git diff main | git apply -R",
        "git apply",
        "git apply <<EOF\n+++ b/$X\nEOF",
        "codex apply 123",
        "hg import x.diff",
        f"cat > a.diff <<'EOF'\n{CHANGED}EOF\ngit apply a.diff b.diff",
    ],
)
def test_a_diff_that_cannot_be_known_is_unread(command: str) -> None:
    """A diff from a file, a pipe or another machine may change any file."""
    assert {part.tool_name for part in parts(command) if part.unread} == {"write", "edit"}


@pytest.mark.parametrize(
    "command",
    [
        f"git apply --check <<'EOF'\n{CHANGED}EOF",
        "git apply --stat x.diff",
        "git am --abort",
        f"patch --dry-run -p1 <<'EOF'\n{CHANGED}EOF",
        "git commit -am patch",
        "git log -p",
        f"cat > x.diff <<'EOF'\n{CHANGED}EOF",
    ],
)
def test_a_command_that_changes_no_file_has_no_parts(command: str) -> None:
    """A diff that is only shown or kept is no part."""
    assert parts(command) == ()


name = st.text("abc. ä", min_size=1, max_size=6).map(str.strip).filter(lambda text: text not in ("", ".", ".."))
path = st.lists(name, min_size=1, max_size=3).map("/".join)
body = st.lists(st.sampled_from(["a", "-- b", "++ c", " d", "", "@@ -1 +1 @@", "--- a/x"]), max_size=6)


@examples(25)
@given(st.dictionaries(path, st.tuples(body, body), min_size=1, max_size=3))
def test_the_parts_of_a_diff_of_git_are_the_changes(files: dict[str, tuple[list[str], list[str]]]) -> None:
    """A diff that git makes of any files names each changed file, with the lines that it gets."""
    import tempfile

    with tempfile.TemporaryDirectory() as top:
        for side, at in (("a", 0), ("b", 1)):
            for number, (_, both) in enumerate(files.items()):
                # The names are made unlike each other, so that no file is a directory of another.
                where = Path(top, side, f"{number}", list(files)[number])
                where.parent.mkdir(parents=True)
                where.write_text("".join(f"{line}\n" for line in both[at]))
        diff = subprocess.run(
            ["git", "diff", "--no-index", "--no-prefix", "--no-renames", "a", "b"],
            cwd=top,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    found = parts_of_diff(diff, 1)
    for number, (own, (old, new)) in enumerate(files.items()):
        if old != new:
            texts = [part.input.get("newText", part.input.get("content")) for part in found]
            assert f"{number}/{own}" in paths(found)
            assert any({*new} <= {*str(text).split("\n")} | {*old} for text in texts)


@given(st.lists(st.sampled_from(["--- ", "+++ ", "@@ -1,9 +1 @@", "\n", "a/x", '"', "\\3", "diff --git ", "-", " "])))
def test_no_diff_raises(pieces: list[str]) -> None:
    """Any text gives parts or none."""
    for strip in (None, 0, 1):
        parts_of_diff("".join(pieces), strip)


@pytest.mark.parametrize("header", ["", "+++ ", "diff --git ", '+++ "'])
@pytest.mark.parametrize(
    "line", ["-x\n", "--- a/x\n", "@@ -1 +1 @@\n", "x", '"', "\\", '\\"', "rename to x\n", " ", "\t"]
)
@pytest.mark.slow
def test_a_very_large_diff_is_read_in_linear_time(header: str, line: str) -> None:
    """Half a million characters of any kind take a moment; in square time they would take many minutes."""
    from time import process_time

    began = process_time()
    parts_of_diff(f"--- a/x\n+++ b/x\n{header}" + line * (500_000 // len(line)), 1)
    assert process_time() - began < 60


def test_a_backslash_before_a_digit_that_is_not_octal_stands_for_the_digit() -> None:
    """A name that no program of git writes is read all the same, and raises nothing."""
    parts = parts_of_diff('--- "a/x\\8"\n+++ "b/x\\8"\n@@ -1 +1 @@\n-a\n+b\n', 1)
    assert any("x8" in str(part.input) for part in parts)
