"""Checkpoints that somebody else made: those of a repository have no effect, and a restore of a prepared one writes files
of the working tree, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from agent_hooks.checkpoints.git import CheckpointError
from agent_hooks.checkpoints.private import open_lock, prepare
from agent_hooks.checkpoints.restore import restore
from agent_hooks.checkpoints.store import list_checkpoints
from agent_hooks.turn_notes import store_of
from trust.approving import GATE, agent_file, approve, git, state

pytestmark = pytest.mark.anyio


def object_of(project: Path, kind: str, data: bytes) -> bytes:
    """Write an object into the store without git's checks, and return its name."""
    line = ["git", "--git-dir", store_of(str(project)), "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
    return subprocess.run(line, cwd=project, input=data, capture_output=True, check=True).stdout.strip()


def entry(mode: bytes, name: bytes, digest: bytes) -> bytes:
    """Return an entry of a tree."""
    return mode + b" " + name + b"\0" + bytes.fromhex(digest.decode())


def foreign_checkpoint(project: Path, *path: bytes, target: bytes | None = None) -> None:
    """Make a checkpoint with one file at a path, or with a link in the place of its first directory."""
    store = store_of(str(project))
    os.close(open_lock(store))
    prepare(store, str(project), None, "sha1")
    digest, mode = object_of(project, "blob", b"#!/bin/sh\ntouch ran\n"), b"100755"
    for name in reversed(path):
        tree = entry(mode, name, digest)
        if target is not None and name == path[0]:
            tree = entry(b"120000", name, object_of(project, "blob", target)) + tree
        digest, mode = object_of(project, "tree", tree), b"40000"
    facts = json.dumps({"top": str(project), "created": 1, "skipped": []}).encode()
    who = b"a <a@b> 1 +0000"
    text = b"tree %s\nauthor %s\ncommitter %s\n\nx\n\n%s\n" % (digest, who, who, facts)
    commit = object_of(project, "commit", text).decode()
    # git checks a ref that it writes, and a repository from elsewhere holds any file.
    ref = Path(store_of(str(project)), "refs", "agent-hooks", "s", "1")
    ref.parent.mkdir(parents=True)
    ref.write_text(f"{commit}\n")


@pytest.mark.parametrize(
    "path",
    [
        *((b".git", b"hooks", b"post-checkout"), (b".GIT", b"config"), (b"..", b"outside"), (b".", b"x")),
        *((b"a/../../outside",), (b".git",), (b"sub", b"..", b"..", b"outside")),
    ],
)
async def test_a_checkpoint_cannot_write_outside_of_the_working_tree(
    project: Path, path: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither into the repository itself, nor above it."""
    monkeypatch.chdir(project)
    git("init", cwd=project)
    before = sorted(each for each in (project / ".git").rglob("*") if "agent-hooks" not in each.parts)
    foreign_checkpoint(project, *path)
    for each in await list_checkpoints(project):
        with pytest.raises(CheckpointError):
            await restore(project, each)
    after = {
        each
        for each in (project / ".git").rglob("*")
        if "agent-hooks" not in each.parts and "objects" not in each.parts
    }
    assert not after - {*before, project / ".git" / "refs"}
    assert not (project.parent / "outside").exists()
    assert not (project / "ran").exists()


async def test_a_checkpoint_does_not_write_through_a_link_that_it_brings(project: Path) -> None:
    """A tree with a name twice: a link, and a directory."""
    (project.parent / "elsewhere").mkdir()
    git("init", cwd=project)
    foreign_checkpoint(project, b"d", b"x", target=b"../elsewhere")
    for each in await list_checkpoints(project):
        try:
            await restore(project, each)
        except CheckpointError:
            continue
    assert not (project.parent / "elsewhere" / "x").exists()


async def test_hooks_that_a_checkpoint_restores_wait_for_approval(project: Path) -> None:
    """They are files like others, and the last approved set goes on judging."""
    git("init", cwd=project)
    agent_file(project, text=GATE)
    approve(project)
    foreign_checkpoint(project, b".agent", b"hooks", b"gate.py")
    [checkpoint] = await list_checkpoints(project)
    restored = await restore(project, checkpoint)
    assert restored.written == (".agent/hooks/gate.py",)
    found = state(project)
    assert found.state == "changed"
    assert [file.data for file in (found.files or {}).values()] == [GATE.encode()]
