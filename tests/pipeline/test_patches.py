"""Patches and other programs that write files, in a project with hooks: no way into the files that decide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_hooks.cli.protection import agent_guards
from agent_hooks.guards.config import GuardSettings
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.trust.place import find_place
from agent_hooks.values.answers import Block
from guard_corpus import rows

HOOK = ".agent/hooks/gate.py"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a project with a hook, and patches on the disk."""
    top = tmp_path_factory.mktemp("patches")
    at = top / "project"
    for folder in (".agent/hooks", ".git", "src", "evil/.agent/hooks"):
        (at / folder).mkdir(parents=True)
    for name in (HOOK, f"evil/{HOOK}", "src/a.py"):
        (at / name).write_text("x")
    (at / "evil.apply").write_text("*** Begin Patch\n*** Add File: .agent/hooks/evil.py\n+x\n*** End Patch\n")
    (at / "fix.apply").write_text("*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch\n")
    (at / "evil.patch").write_text(f"--- a/{HOOK}\n+++ b/{HOOK}\n@@ -1 +1 @@\n-x\n+y\n")
    (at / "fix.patch").write_text("--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("AGENT_HOME", raising=False)
        (top / "home").mkdir()
        patched.setenv("HOME", str(top / "home"))
        yield at


def answer(place: Path, tool: str, **input: object) -> str:
    """Return the answer of the guards of an agent in the project."""
    guards = agent_guards(GuardSettings(), find_place(str(place)))
    found = ask_guards(guards, guarded_call(tool, input, str(place)), lambda error: pytest.fail(str(error)))
    return "block" if isinstance(found, Block) else "ask" if found else "pass"


@pytest.mark.parametrize(("command", "expected"), [(row["command"], row["answer"]) for row in rows("patches.tsv")])
def test_no_patch_and_no_program_writes_where_an_agent_decides(place: Path, command: str, expected: str) -> None:
    """A patch of any form and a program that writes are judged by the files that they name."""
    assert answer(place, "bash", command=command) == expected


def patch(*lines: str) -> str:
    """Return a patch of `apply_patch`."""
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


@pytest.mark.parametrize(
    ("tool", "input", "expected"),
    [
        ("apply_patch", {"input": patch("*** Add File: .agent/hooks/evil.py", "+x")}, "block"),
        ("apply_patch", {"patchText": patch("*** Delete File: .agent/hooks/gate.py")}, "block"),
        ("apply_patch", {"patch": patch("*** Update File: src/a.py", "*** Move to: .agent/settings.json")}, "block"),
        ("apply_patch", {"input": patch("*** Update File: src/a.py", "@@", " *** Add File: .env", "+x")}, "block"),
        ("apply_patch", {"input": patch("*** Add File: .agent/hooks/evil.py:txt", "+x")}, "block"),
        ("apply_patch", {"input": patch("*** Add File:.opencode/plugin/evil.js", "+x")}, "block"),
        ("apply_patch", {"input": patch("\t*** Add File: .github/hooks/evil.json", "+x")}, "block"),
        ("apply_patch", {"command": ["apply_patch", patch("*** Add File: .codex/config.toml", "+x")]}, "block"),
        ("apply_patch", {"input": patch("*** Add File: hooks/evil.py", "+x"), "workdir": ".agent"}, "block"),
        ("shell", {"command": ["apply_patch", patch("*** Add File: .agent/hooks/evil.py", "+x")]}, "block"),
        ("mcp__git__apply_diff", {"diff": "--- a/x\n+++ b/.agent/hooks/evil.py\n@@ -1 +1 @@\n-a\n+b\n"}, "block"),
        ("apply_patch", {"input": patch("*** Add File: src/new.py", "+x")}, "pass"),
        ("apply_patch", {"input": patch("*** Add File: docs/a.md", "+see .agent/hooks/gate.py")}, "pass"),
        ("write", {"path": "docs/a.md", "content": patch("*** Add File: .agent/hooks/evil.py", "+x")}, "pass"),
        ("write", {"path": ".opencode/plugins/evil.js", "content": ""}, "block"),
        ("edit", {"path": "~/.pi/agent/settings.json", "oldText": "", "newText": ""}, "block"),
        ("read", {"path": ".opencode/plugins/evil.js"}, "pass"),
    ],
)
def test_the_tools_that_apply_patches_are_judged_by_their_paths(
    place: Path, tool: str, input: dict[str, object], expected: str
) -> None:
    """The tool itself is judged, also where no bridge divides its call."""
    assert answer(place, tool, **input) == expected


def test_the_settings_of_each_bridge_are_places_that_decide() -> None:
    """The guards know each settings file that a bridge installs into, by its name."""
    from agent_hooks.bridges import BRIDGES, open_bridge
    from agent_hooks.guards.sensitive import normalise, sensitive

    for name in BRIDGES:
        for file in open_bridge(name).settings_files({}).values():
            path = normalise(file, cwd="/w/project", home="/home/dev")
            assert sensitive(path, write=True) == "guard-settings", f"{name}: {file}"


def test_a_variable_that_moves_the_settings_of_a_bridge_moves_the_protection(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are protected where the variable has them, in a directory of any name."""
    from agent_hooks.bridges import BRIDGES, open_bridge
    from agent_hooks.guards.agents import AGENT_PLACES

    variables = {each.variable for each in AGENT_PLACES if each.variable}
    for variable in variables:
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    for name in BRIDGES:
        found = open_bridge(name).settings_files({each: str(tmp_path / each.lower()) for each in variables})
        for path in found.values():
            if path.startswith(str(tmp_path)):
                assert answer(place, "write", path=path, content="") == "block", path
                assert answer(place, "bash", command=f"echo x > {path}") == "block", path
    plugin = tmp_path / "xdg_config_home" / "opencode" / "plugin" / "evil.js"
    assert answer(place, "write", path=str(plugin), content="") == "block"
    assert answer(place, "bash", command=f"rm -r {tmp_path}/codex_home/rules") == "block"


def test_a_tree_of_an_agent_that_runs_our_hooks_is_not_taken_away(tmp_path: Path) -> None:
    """With entries of ours in its settings, the plugins and hooks of the agent are protected as trees too."""
    from agent_hooks.guards.agents import usual

    hooked = [f"{tmp_path}/home/.config/opencode/opencode.json"]
    folders = dict(usual([str(tmp_path / "app"), str(tmp_path / "home")], hooked))
    assert "plugin" in folders[f"{tmp_path}/app/.opencode"]
    assert f"{tmp_path}/app/.codex" not in folders
    assert not dict(usual([str(tmp_path / "app")], []))
