"""The effects of code in other languages, of patches, and of file tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_hooks.effects import effects_of
from agent_hooks.values.effects import Effects


def effects(code: str, language: str = "python3 -c") -> Effects:
    return effects_of("bash", {"command": f"{language} '{code}'"}, cwd="/srv/app")


def brief(found: Effects) -> set[str]:
    return {f"{each.access} {each.path.removeprefix('/srv/app/')}{'/' if each.tree else ''}" for each in found.paths}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('open("a", "w")', {"write a"}),
        ('open("a", mode="ab")', {"write a"}),
        ('open("a")', {"read a"}),
        (
            'from pathlib import Path; p = Path("a"); p.write_text(p.read_text().replace("x", "y"))',
            {"read a", "write a"},
        ),
        ('from pathlib import Path; (Path("d") / "a").unlink()', {"delete d/a"}),
        ('import os; os.rename("a", "b")', {"delete a/", "write b/"}),
        ('import shutil; shutil.rmtree("d")', {"delete d/"}),
        ('import shutil as s; s.copytree("d", "e")', {"read d/", "write e/"}),
        ('import json; print(json.load(open("a.json")))', {"read a.json"}),
        ('import subprocess; subprocess.run(["rm", "a"])', {"delete a"}),
        ('import zipfile; zipfile.ZipFile("a.zip").extractall("out")', {"read a.zip", "write out/"}),
        ("print(sum(x * x for x in range(9)))", set()),
        ('import sys; open(sys.argv[1], "w")', {"write **"}),
    ],
)
def test_python_code_has_the_effects_of_its_calls(code: str, expected: set[str]) -> None:
    """Constants are folded, and imports resolved; nothing is opaque."""
    found = effects(code)
    assert expected <= brief(found)
    assert {each.partition(" ")[0] for each in brief(found)} == {each.partition(" ")[0] for each in expected}
    assert not found.unknown


@pytest.mark.parametrize(
    "code", ["import build; build.main()", 'exec(open("x").read())', "getattr(x, y)()()", "def f(:"]
)
def test_a_python_call_that_is_not_known_is_opaque(code: str) -> None:
    """A module of the project may do anything."""
    assert effects(code).unknown


def test_python_code_sends_to_the_host_of_a_request() -> None:
    """A request that only asks sends nothing."""
    assert effects('import requests; requests.post("https://a.org/x", data="y")').sends_to("a.org")
    assert not effects('import requests; requests.get("https://a.org/x")').sends_to("*")


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("node -e", 'require("fs").writeFileSync("a", "x")', {"write a"}),
        ("node -e", 'const fs = require("fs"); fs.renameSync("a", "b")', {"delete a/", "write b/"}),
        ("perl -e", 'open(my $f, ">", "a")', {"write a"}),
        ("perl -e", 'open(F, ">a")', {"write a"}),
        ("perl -e", 'unlink "a"', {"delete a"}),
        ("ruby -e", 'File.write("a", "x")', {"write a"}),
        ("ruby -e", 'File.open("a", "w")', {"write a"}),
        ("php -r", 'file_put_contents("a", "x");', {"write a"}),
        ("node -e", "console.log(1)", set()),
    ],
)
def test_code_of_other_languages_has_the_effects_of_known_calls(language: str, code: str, expected: set[str]) -> None:
    """The calls stand in a list."""
    found = effects(code, language)
    assert brief(found) == expected
    assert not found.unknown


@pytest.mark.parametrize(
    ("language", "code"), [("node -e", 'require("./build")'), ("perl -e", "eval $x"), ("php -r", "include $x;")]
)
def test_code_that_runs_other_code_is_opaque(language: str, code: str) -> None:
    """A file of the project may do anything."""
    assert effects_of("bash", {"command": f"{language} '{code}'"}, cwd="/srv/app").unknown


PATCH = """*** Begin Patch
*** Add File: new.py
+x
*** Update File: a.py
*** Move to: b.py
@@
-x
+y
*** Delete File: old.py
*** End Patch
"""


def test_file_tools_have_the_effects_of_their_input(tmp_path: Path) -> None:
    """A search reads or lists a whole tree; a tool that is not ours is unknown."""
    assert effects_of("read", {"path": "a"}, cwd=tmp_path).reads("a")
    assert effects_of("write", {"path": "./x/../a", "content": ""}, cwd=tmp_path).writes("a")
    assert effects_of("edit", {"path": "a"}, cwd=tmp_path).writes("a")
    assert effects_of("grep", {"pattern": "x"}, cwd=tmp_path).reads("src/a.py")
    assert not effects_of("ls", {}, cwd=tmp_path).reads("*")
    assert effects_of("write", {"content": ""}, cwd=tmp_path).unknown
    assert effects_of("mcp__x__do", {"path": "a"}, cwd=tmp_path).unknown


def test_a_patch_has_the_effects_of_its_headers(tmp_path: Path) -> None:
    """The same in a command, where the patch stands on stdin."""
    tool = effects_of("apply_patch", {"input": PATCH}, cwd=tmp_path)
    typed = effects_of("bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF"}, cwd=tmp_path)
    for found in (tool, typed):
        assert found.writes("new.py")
        assert found.writes("b.py")
        assert found.deletes("old.py")
        assert not found.writes("other.py")
    assert tool.deletes("a.py")
