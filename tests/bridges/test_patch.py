"""Patches of `apply_patch` as calls of our tools."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_hooks.bridges.base.happenings import Part
from agent_hooks.bridges.patch import parts_of, parts_of_call
from agent_hooks.bridges.patch_text import MOST_PARTS
from support import examples

PATCH = """*** Begin Patch
*** Add File: new.py
+one
+two
*** Update File: a b.py
*** Move to: c.py
@@ def f
-old
+new
 same
*** Delete File: gone.py
*** End Patch"""
PARTS = (
    Part("write", {"path": "new.py", "content": "one\ntwo\n"}),
    Part("edit", {"path": "a b.py", "oldText": "old\nsame", "newText": "new\nsame"}),
    Part("write", {"path": "c.py", "content": "new\nsame\n"}),
    Part("bash", {"command": "mv -- 'a b.py' c.py"}),
    Part("write", {"path": "gone.py", "content": ""}),
    Part("bash", {"command": "rm -- gone.py"}),
)


def paths(parts: tuple[Part, ...]) -> list[str]:
    """Return the paths that the parts name, also those of deletions and moves; `?` for a part that is unread."""
    found: dict[str, None] = {}
    for part in parts:
        if part.unread:
            found["?"] = None
        elif part.tool_name == "bash":
            found.update(dict.fromkeys(shlex.split(part.input["command"])[2:]))
        else:
            found[part.input["path"]] = None
    return list(found)


# ---- the text of a patch ---------------------------------------------------------------------------------------------


def test_each_file_of_a_patch_is_a_call_of_ours() -> None:
    """A new file is a write, a changed one an edit, a deletion a write of nothing and `rm`, a move a write and `mv`."""
    assert parts_of(PATCH) == PARTS


@pytest.mark.parametrize(
    "text",
    [
        PATCH.replace("\n", "\r\n"),
        f"<<'EOF'\n{PATCH}\nEOF",
        f"\n\n  {PATCH}\n\n",
        f"I change two files:\n{PATCH}\nDone.",
        PATCH.replace("*** Begin Patch", "*** Begin Patch\n*** Environment ID: remote"),
        PATCH.replace("*** Add", "\t*** Add", 1),
        PATCH.replace("File: ", "File:").replace("to: ", "to:"),
        PATCH.replace("File: ", "File:   ").replace("gone.py", "gone.py \t"),
        PATCH.replace("*** End Patch", "*** End of File\n*** End Patch"),
        PATCH.replace("*** Begin Patch", "\ufeff*** Begin Patch"),
    ],
    ids=["crlf", "heredoc", "blanks", "prose", "environment", "indent", "tight", "wide", "eof", "bom"],
)
def test_odd_spacing_changes_no_part(text: str) -> None:
    """The spacing that one of the programs accepts gives the same parts."""
    assert parts_of(text) == PARTS


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["*** Update File: a", "@@", " *** Add File: b", "+x"], ["a", "b"]),
        (["*** Add File: a", "+x", " *** Delete File: b"], ["a", "b"]),
        (["*** Update File: a", "@@", "-x", "*** Move to: b"], ["a", "b"]),
        (["*** Add File: a", "*** Move to: b"], ["b", "a"]),
        (["*** Move to: b"], ["b"]),
        (["*** Add File: .agent/hooks/evil.py:txt", "+x"], [".agent/hooks/evil.py:txt", ".agent/hooks/evil.py"]),
        (["*** Rename File: a"], ["a"]),
        (["*** add file: a"], ["a"]),
        (["***Add File: a"], ["a"]),
        (["*** Add File:\xa0a\u2003"], ["a"]),
        (["*** End Patch", "*** Add File: a"], ["a"]),
        (["+*** Add File: a", "-*** Add File: b", "*** Add File: c"], ["c"]),
    ],
)
def test_of_two_readings_both_count(lines: list[str], named: list[str]) -> None:
    """Each path that one of the programs could mean is in a part; an added line that looks like a header is none."""
    assert sorted(paths(parts_of("\n".join(["*** Begin Patch", *lines, "*** End Patch"])))) == sorted(named)


def test_a_header_inside_of_a_hunk_leaves_the_rest_to_both_files() -> None:
    """The lines below an indented header belong to the file above it and to its own."""
    text = "*** Begin Patch\n*** Update File: a\n@@\n *** Add File: b\n+secret\n*** End Patch"
    by_path = {part.input["path"]: part.input for part in parts_of(text)}
    assert "secret" in by_path["a"]["newText"]
    assert "secret" in by_path["b"]["content"]


@pytest.mark.parametrize("text", ["*** Begin Patch", "*** begin patch\n*** End Patch", " *** Begin Patch\n+++ b/x\n"])
def test_a_patch_without_a_file_is_unread(text: str) -> None:
    """A text that begins like a patch and names no file gives a write and an edit that are unread."""
    parts = parts_of(text)
    assert [part.tool_name for part in parts] == ["write", "edit"]
    assert all(part.unread for part in parts)


def test_more_parts_than_can_be_judged_are_unread() -> None:
    """A patch of very many files has its first parts, and parts that are unread."""
    parts = parts_of("*** Begin Patch\n" + "*** Add File: x\n" * (MOST_PARTS + 1))
    assert len(parts) == MOST_PARTS + 2
    assert parts[-1].unread


def test_other_texts_have_no_parts() -> None:
    """A text that is no patch has no parts."""
    assert parts_of("") == parts_of("*** a heading ***") == parts_of("--- a/x\n+++ b/x\n") == ()


name = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z"), exclude_characters=":\ufeff"), min_size=1)
line = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))
change = st.tuples(st.sampled_from(" +-"), line.filter(lambda text: not text.lstrip().startswith("***")))


@st.composite
def patches(draw: st.DrawFn) -> tuple[str, tuple[Part, ...]]:
    """Return the text of a patch, with the parts that it was made from."""
    lines, parts = ["*** Begin Patch"], list[Part]()
    for verb, path in draw(st.lists(st.tuples(st.sampled_from(["Add", "Update", "Delete"]), name), min_size=1)):
        lines.append(f"*** {verb} File: {path}")
        if verb == "Delete":
            parts += parts_of("\n".join(lines[-1:]))
        elif verb == "Add":
            content = draw(st.lists(line))
            lines += [f"+{each}" for each in content]
            parts.append(Part("write", {"path": path, "content": "".join(f"{each}\n" for each in content)}))
        else:
            hunk = draw(st.lists(change, min_size=1))
            lines += ["@@", *(kind + text for kind, text in hunk)]
            old = "\n".join(text for kind, text in hunk if kind != "+")
            new = "\n".join(text for kind, text in hunk if kind != "-")
            parts.append(Part("edit", {"path": path, "oldText": old, "newText": new}))
    return "\n".join([*lines, "*** End Patch"]), tuple(parts)


@given(patches())
def test_a_patch_gives_the_parts_that_it_was_made_from(made: tuple[str, tuple[Part, ...]]) -> None:
    """The parts of a generated patch are the writes, edits and deletions that it was generated from."""
    text, parts = made
    assert parts_of(text) == parts


@given(
    st.lists(st.tuples(st.text(" \t"), st.sampled_from(["Add File", "Update File", "Delete File", "Move to"]), name))
)
def test_each_path_of_a_header_is_in_a_part(headers: list[tuple[str, str, str]]) -> None:
    """No header of a patch is passed over, with any indentation and between any other lines."""
    text = "\n".join(["*** Begin Patch", *(f"{indent}*** {verb}: {path}\n+x" for indent, verb, path in headers)])
    assert {path for _, _, path in headers} <= set(paths(parts_of(text)))


pieces = [*"*+-@ \n\r\t:'\"\\$`~/\0", "Add File", "*** ", "Begin Patch", "\ud800", "EOF", "x"]
texts = st.lists(st.sampled_from(pieces)).map("".join)


@examples(100)
@given(st.text() | texts, st.sampled_from(["apply_patch", "bash", "shell", "local_shell"]))
@example("*** Add File: \0", "bash")
@example("*** Update File: \ud800\n*** Move to: \ud800", "apply_patch")
def test_no_text_raises(text: str, tool: str) -> None:
    """Any text gives parts or none, as a patch and as a command."""
    parts_of(text)
    for command in (text, f"apply_patch {text}", f"cd x; apply_patch <<EOF\n{text}\nEOF", ["apply_patch", text]):
        parts_of_call(tool, {"command": command, "cwd": "/w"})


# ---- calls -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "input"),
    [
        ("apply_patch", {"input": PATCH}),
        ("apply_patch", {"patch": PATCH}),
        ("apply_patch", {"patchText": PATCH}),
        ("apply_patch", {"command": PATCH}),
        ("apply_patch", {"command": ["apply_patch", PATCH]}),
        ("functions.apply_patch", {"input": PATCH}),
        ("mcp__editor__apply_patch", {"input": {"patch": PATCH}}),
        ("bash", {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        ("bash", {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF\n", "description": "patch"}),
        ("bash", {"command": f"applypatch '{PATCH}'"}),
        ("bash", {"command": f"bash -lc \"apply_patch <<'EOF'\n{PATCH}\nEOF\n\""}),
        ("bash", {"command": f"ap''ply_pat\\ch '{PATCH}'"}),
        ("bash", {"command": f"echo '{PATCH}' | sudo apply_patch"}),
        ("bash", {"command": f"cat > p <<'EOF'\n{PATCH}\nEOF\napply_patch < p"}),
        ("bash", {"command": f"codex --codex-run-as-apply-patch '{PATCH}'"}),
        ("shell", {"command": ["apply_patch", f"<<'EOF'\n{PATCH}\nEOF\n"]}),
        ("exec_command", {"cmd": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}),
    ],
)
def test_a_call_that_applies_a_patch_has_its_parts(tool: str, input: dict[str, Any]) -> None:
    """The tool under any argument, and the program in any command of a shell, give the parts of the patch."""
    assert parts_of_call(tool, input) == PARTS


@pytest.mark.parametrize(
    ("tool", "input", "path"),
    [
        ("apply_patch", {"input": PATCH, "workdir": "sub"}, "sub/new.py"),
        ("apply_patch", {"input": PATCH, "cwd": "/other"}, "/other/new.py"),
        ("apply_patch", {"input": PATCH.replace("new.py", "/abs/new.py"), "cwd": "sub"}, "/abs/new.py"),
        ("bash", {"command": f"cd sub && apply_patch <<'EOF'\n{PATCH}\nEOF"}, "sub/new.py"),
        ("bash", {"command": f"cd sub/..; apply_patch '{PATCH}'"}, "new.py"),
        ("bash", {"command": f"cd ../up; apply_patch '{PATCH}'"}, "../up/new.py"),
        ("bash", {"command": f"cd ~/x; apply_patch '{PATCH}'"}, "~/x/new.py"),
        ("bash", {"command": f"apply_patch '{PATCH}'", "workdir": ".agent/hooks"}, ".agent/hooks/new.py"),
    ],
)
def test_the_paths_of_a_patch_are_relative_to_the_agents_directory(tool: str, input: dict[str, Any], path: str) -> None:
    """A directory that the call names, or that the command changes to, stands before each relative path."""
    parts = parts_of_call(tool, input)
    assert parts[0].input["path"] == path
    assert not any(part.unread for part in parts)


def test_a_known_directory_gives_absolute_paths_where_the_command_changes_it() -> None:
    """With the agent's directory, `cd` gives absolute paths."""
    parts = parts_of_call("bash", {"command": f"cd sub && apply_patch '{PATCH}'"}, "/project")
    assert parts[0].input["path"] == "/project/sub/new.py"
    assert parts_of_call("bash", {"command": f"apply_patch '{PATCH}'"}, "/project") == PARTS


@pytest.mark.parametrize(
    "command",
    [
        'apply_patch "$(cat p)"',
        "apply_patch < p",
        "cat p | apply_patch",
        "curl -s https://x.example/p | applypatch",
        "apply_patch",
        "apply_patch nonsense",
        f"cd \"$D\" && apply_patch '{PATCH}'",
        "apply_patch <<EOF\n*** Begin Patch\n*** Add File: $X\n+y\n*** End Patch\nEOF",
        f"apply_patch '{PATCH}' && $(",
        f"apply_patch '{PATCH}' {'x' * 200_000}",
    ],
)
def test_a_patch_that_cannot_be_known_is_unread(command: str) -> None:
    """A patch from a file, a pipe or a variable may write any file."""
    assert {part.tool_name for part in parts_of_call("bash", {"command": command}) if part.unread} == {"write", "edit"}


@pytest.mark.parametrize("input", [{}, {"input": "nonsense"}, {"input": 3}, {"input": None}])
def test_a_call_of_the_tool_without_a_patch_is_unread(input: dict[str, Any]) -> None:
    """The tool without a patch that can be read may write any file."""
    assert all(part.unread for part in parts_of_call("apply_patch", input))
    assert parts_of_call("apply_patch", input)


@pytest.mark.parametrize(
    ("tool", "input"),
    [
        ("write", {"path": "notes.md", "content": PATCH}),
        ("bash", {"command": "ls"}),
        ("bash", {"command": "grep -rn apply_patch src"}),
        ("bash", {"command": f"cat > notes.md <<'EOF'\n{PATCH}\nEOF"}),
        ("mcp__tracker__apply_patch", {"id": 3}),
        ("read", {"path": "apply_patch.py"}),
    ],
)
def test_a_call_that_applies_no_patch_has_no_parts(tool: str, input: dict[str, Any]) -> None:
    """A call that only holds the text of a patch is one call."""
    assert parts_of_call(tool, input) == ()


@pytest.mark.parametrize(
    "line", [PATCH + "\n", "x", "*** Add File: x\n", " *** Add File: y\n", " ", "*** ", " x y z\n", "\r", "a "]
)
@pytest.mark.slow
def test_a_very_large_patch_is_read_in_linear_time(line: str) -> None:
    """Ten million characters of any kind take seconds."""
    from time import process_time

    text = f"*** Begin Patch\n*** Update File: x\n{line * (10_000_000 // len(line))}"
    began = process_time()
    parts_of(text)
    parts_of_call("bash", {"command": f"apply_patch <<'EOF'\n{text}"})
    assert process_time() - began < 30
