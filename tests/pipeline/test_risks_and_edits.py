"""The line about the risk of a call, and the diff of an edit, which a question shows."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import effects
from agent_hooks.effects import effects_of
from agent_hooks.pipeline.edits import diff_of
from agent_hooks.pipeline.risks import risk_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("command", "risk"),
    [
        ("ls", ""),
        ("echo x > a", "writes a"),
        ("rm a", "deletes a"),
        ("rm -r src", "deletes everything in src"),
        ("rm -r src; rm a b c d", "deletes everything in src and deletes a, b and 2 more"),
        ("rm a b c", "deletes a, b and c"),
        ("rm $X", "deletes files that are not named"),
        ("rm 'a\nb' /x/y", "deletes 'a\\nb' and /x/y"),
        ("sudo true", "runs as root"),
        ("chmod 777 a", "gives rights: world-writable"),
        ("pip install six", "installs six"),
        ("npm ci", "installs packages"),
        ("kill 17", "ends the process 17"),
        ("dd if=a of=/dev/sda", "writes to the device /dev/sda"),
        ("scp a example.org:/x", "sends a to example.org"),
        ("make", "runs code that is not known: make"),
        ("make; echo x > a", "writes a"),
        ("git stash drop", "discards stashes"),
        (
            "kill 1; kill 2; kill 3; kill 4",
            "ends the process 1, ends the process 2, ends the process 3 and ends the process 4",
        ),
        (
            "kill 1; kill 2; kill 3; kill 4; kill 5",
            "ends the process 1, ends the process 2, ends the process 3 and 2 more effects",
        ),
    ],
)
async def test_the_risk_of_a_call_is_one_plain_line(project: Path, command: str, risk: str) -> None:
    """Losses come first; code that is not known is named if nothing else is."""
    assert await risk_of(effects_of("bash", {"command": command}, cwd=project), str(project)) == risk


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_without_git_the_files_whose_changes_are_lost_are_not_counted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is in a directory without a repository."""
    effects = effects_of("bash", {"command": "git reset --hard"}, cwd=project)
    assert await risk_of(effects, str(project)) == "discards uncommitted changes"
    assert await risk_of(effects, str(project / "absent")) == "discards uncommitted changes"
    monkeypatch.setenv("PATH", str(project))
    monkeypatch.delenv("AGENT_HOOKS_GIT", raising=False)
    assert await risk_of(effects, str(project)) == "discards uncommitted changes"


@pytest.mark.parametrize(
    ("tool", "given", "diff"),
    [
        ("write", {"path": "a", "content": "one\n"}, ""),
        ("write", {"path": "a"}, ""),
        ("write", {"path": "a", "content": "x\n" * 500}, "1 lines become 500 lines"),
        ("write", {"path": "large", "content": "x"}, ""),
        ("write", {"path": "a\0b", "content": "x"}, ""),
        ("write", {"path": ".", "content": "x"}, ""),
        ("write", {"content": "x"}, ""),
        ("edit", {"path": "a", "oldText": "one"}, ""),
        ("bash", {"path": "a", "content": "x"}, ""),
    ],
)
def test_an_edit_that_cannot_be_shown_has_no_diff(project: Path, tool: str, given: dict[str, Any], diff: str) -> None:
    """It changes nothing, is too long, names no file, or is no edit."""
    (project / "a").write_text("one\n")
    (project / "large").write_text("x" * (256 * 1024 + 1))
    assert diff_of(tool, given, str(project)) == diff


def test_a_file_on_a_mount_that_may_not_answer_is_not_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question must not wait for a network; the mount that the call works in answers."""
    share = project / "share"
    share.mkdir()
    (share / "a").write_text("one\n")
    (project / "link").symlink_to("share/a")
    calls = [{"path": path, "content": "two\n"} for path in ("share/a", str(share / "a"), "link")]
    assert all(diff_of("write", each, str(project)).endswith("-one\n+two") for each in calls)
    table = project / "mountinfo"
    table.write_text(f"36 35 98:0 / {share} rw - nfs server:/ rw\n")
    mounts = effects.slow_mounts(str(table))
    monkeypatch.setattr(effects, "_mounts", (float("inf"), effects._MOUNTS, mounts))
    assert [diff_of("write", each, str(project)) for each in calls] == ["", "", ""]
    assert diff_of("write", {"path": "a", "content": "two\n"}, str(share)).endswith("-one\n+two")


@pytest.mark.parametrize("old", ["f4", "f1\nf2", "f0", "f19", "4\nf5\nf6"])
def test_an_edit_is_shown_with_the_lines_around_it_and_their_numbers(project: Path, old: str) -> None:
    """As the diff of the whole file would be; an old text that is there twice, or not, is shown alone."""
    text = "\n".join(f"f{number}" for number in range(20)) + "\n"
    (project / "long.py").write_text(text)
    given = {"path": "long.py", "oldText": old, "newText": "new\nlines"}
    if text.count(old) == 1:
        after = text.replace(old, "new\nlines").splitlines()
        whole = difflib.unified_diff(text.splitlines(), after, "long.py", "long.py", lineterm="")
        assert diff_of("edit", given, str(project)) == "\n".join(whole)
    else:
        assert diff_of("edit", given, str(project)).startswith("--- long.py\n+++ long.py\n@@ -1")
    missing = {"path": "long.py", "oldText": "absent", "newText": "new"}
    assert diff_of("edit", missing, str(project)).endswith("-absent\n+new")
