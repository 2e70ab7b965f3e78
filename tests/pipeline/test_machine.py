"""The machine of the guards: it follows links, and touches no file system that may not answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_hooks import effects
from agent_hooks.effects import slow_mounts
from agent_hooks.guards import builtin_guards
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.pipeline.machine import RealMachine
from agent_hooks.values.answers import Block

TOUCHES = ("readlink", "lstat", "stat", "scandir", "listdir", "open")


def test_the_guards_touch_no_mount_that_may_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a file tool, the paths of a command, an archive and a patch there are judged by their names."""
    slow, mounts = tmp_path / "slow", tmp_path / "mountinfo"
    mounts.write_text(f"23 22 0:22 / {slow} rw,relatime shared:1 - nfs4 server:/x rw\n")
    slow.mkdir()
    project = tmp_path / "project"
    project.mkdir()
    (project / "link").symlink_to(slow)
    monkeypatch.setattr(effects, "slow_mounts", lambda: slow_mounts(str(mounts)))
    touched: list[str] = []

    def watch(name: str) -> None:
        real = getattr(os, name)

        def watched(path: object, *args: object, **more: object) -> object:
            touched.append(os.fspath(path) if isinstance(path, str | os.PathLike) else "")
            return real(path, *args, **more)

        monkeypatch.setattr(os, name, watched)

    for name in TOUCHES:
        watch(name)
    # A file there may exist, so nothing is taken for new.
    assert RealMachine(str(project), "/home/dev").exists(f"{slow}/new.pem")
    guards = builtin_guards()
    calls = [
        ("read", {"path": "link/notes.txt"}),
        ("bash", {"command": "cat link/notes.txt; echo x > link/out; rm link/out; cd link && cp a b"}),
        ("bash", {"command": f"tar xf {slow}/a.tar; unzip link/a.zip -d link; patch -p1 < link/a.diff"}),
    ]
    for tool, given in calls:
        ask_guards(guards, guarded_call(tool, given, str(project)), lambda error: pytest.fail(str(error)))
    assert [path for path in touched if path.startswith(str(slow)) or "/link/" in path] == []


@pytest.mark.parametrize("listed", [True, False], ids=["a list of mounts", "no list"])
def test_the_guards_follow_every_link_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, listed: bool
) -> None:
    """With a list of mounts and without one, through links of links, and back from them with `..`."""
    mounts = tmp_path / "mountinfo"
    if listed:
        mounts.write_text("22 1 0:21 / / rw - ext4 /dev/sda rw\n")
    monkeypatch.setattr(effects, "slow_mounts", lambda: slow_mounts(str(mounts)))
    elsewhere = tmp_path / "elsewhere" / "deep"
    elsewhere.mkdir(parents=True)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "first").symlink_to("second")
    (tmp_path / "project" / "second").symlink_to(elsewhere)
    (tmp_path / "project" / "loop").symlink_to("loop")
    found = RealMachine(f"{tmp_path}/project", "/home/dev")
    for path in ("first", "first/x", "first/../x", "first/./../../x/y", "loop", "absent/../first", "a\udc80b", "."):
        spelled = f"{tmp_path}/project/{path}"
        assert found.real(spelled) == os.path.realpath(spelled)
    assert found.real(f"{tmp_path}/\ud800").endswith("\N{REPLACEMENT CHARACTER}")


def test_a_directory_that_cannot_exist_has_no_machine() -> None:
    """The guards fail then, and a guard that fails blocks the call."""
    with pytest.raises(ValueError, match="null character"):
        RealMachine("/a\0b", "/home/dev")


def test_a_link_to_a_secret_is_blocked(tmp_path: Path) -> None:
    """A file tool and a command read the file behind the link."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "notes").symlink_to(tmp_path / ".ssh")
    guards = builtin_guards()
    call = guarded_call("read", {"path": "notes/id_rsa"}, str(tmp_path))
    assert isinstance(ask_guards(guards, call, lambda error: pytest.fail(str(error))), Block)
