"""Checkpoints with real git: a restore brings back each byte, and the person's index, stash and branches stay."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import checkpoints
from agent_hooks.checkpoints import Checkpoint, CheckpointError, Skipped
from agent_hooks.checkpoints.git import open_worktree
from agent_hooks.checkpoints.snapshot import save
from agent_hooks.turn_notes import store_of
from support import PATIENCE, examples

pytestmark = pytest.mark.anyio
Leaves = dict[str, tuple[str, bytes]]


def git(top: Path | str, *args: str) -> str:
    """Run git as the person does."""
    identity = ["-c", "user.name=p", "-c", "user.email=p@example.com", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *args], cwd=top, capture_output=True, text=True, errors="surrogateescape")
    assert done.returncode == 0, done.stderr
    return done.stdout


def leaves(top: Path | str) -> Leaves:
    """Return every file and symlink below a directory, without `.git` at its top: kind and contents."""
    found: Leaves = {}
    for where, directories, names in os.walk(top):
        if where == str(top) and ".git" in directories:
            directories.remove(".git")
        for name in [*names, *directories]:
            path = os.path.join(where, name)
            if os.path.islink(path):
                found[os.path.relpath(path, top)] = "link", os.fsencode(os.readlink(path))
            elif name in names and name != ".git":
                kind = "program" if os.stat(path).st_mode & 0o100 else "file"
                found[os.path.relpath(path, top)] = kind, Path(path).read_bytes()
    return found


def theirs(top: Path) -> dict[str, Any]:
    """Return the person's git state: the bytes of the index, HEAD, branches, stash, the state of a merge."""
    directory = Path(git(top, "rev-parse", "--absolute-git-dir").strip())
    objects = top / git(top, "rev-parse", "--git-path", "objects").strip()
    names = ("index", "index.lock", "HEAD", "MERGE_HEAD", "logs/refs/stash", "config", "info/exclude")
    return {
        **{name: (directory / name).read_bytes() for name in names if (directory / name).exists()},
        "refs": git(top, "for-each-ref"),
        "objects": sorted(os.listdir(objects)),
    }


def store(top: Path) -> Path:
    """Return the store of a working tree."""
    return Path(store_of(str(top)))


def saved_names(top: Path, commit: str) -> list[str]:
    """Return the paths that a checkpoint holds."""
    return git(top, f"--git-dir={store(top)}", "ls-tree", "-r", "--name-only", commit).split()


def write(path: Path, content: str | bytes = "") -> Path:
    """Write a file, and the directories it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def odd(top: Path, name: bytes) -> Path:
    """Return a path whose name may be any bytes."""
    return top / os.fsdecode(name)


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository with one commit."""
    git(project, "init", "-q", "-b", "main")
    write(project / "tracked.txt", "one\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "one")
    return project


async def reasons(cwd: Path, **options: Any) -> dict[str, str]:
    """Make a checkpoint; return the paths that it skipped, with reasons."""
    return {each.path: each.reason for each in (await checkpoints.create(cwd, "s", 0, **options)).skipped}


# ---- everything at once ----------------------------------------------------------------------------------------------


def unborn(top: Path) -> Path:
    """Give a repository without a commit."""
    git(top, "init", "-q")
    return top


def committed(top: Path) -> Path:
    """Give a repository with commits, a stash, staged, deleted and renamed files."""
    git(top, "init", "-q", "-b", "main")
    for name in ("staged", "deleted", "removed", "renamed", "modified", "both"):
        write(top / name, f"{name}\n" * 3)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    write(top / "modified", "stashed\n")
    git(top, "stash")
    write(top / "staged", "in the index\n")
    write(top / "both", "in the index\n")
    git(top, "add", "-A")
    write(top / "both", "on the disk\n")
    (top / "deleted").unlink()
    git(top, "rm", "-q", "removed")
    git(top, "mv", "renamed", "new-name")
    write(top / "modified", "modified\n")
    return top


def locked(top: Path) -> Path:
    """Give a repository whose index another git process holds."""
    committed(top)
    write(top / ".git" / "index.lock", "somebody's")
    return top


def merging(top: Path) -> Path:
    """Give a repository in the middle of a merge with a conflict."""
    committed(top)
    git(top, "stash")
    git(top, "switch", "-qc", "other")
    write(top / "both", "theirs\n")
    git(top, "commit", "-qam", "theirs")
    git(top, "switch", "-q", "main")
    write(top / "both", "ours\n")
    git(top, "commit", "-qam", "ours")
    assert subprocess.run(["git", "merge", "-q", "other"], cwd=top, capture_output=True).returncode
    return top


def linked(top: Path) -> Path:
    """Give a linked working tree."""
    committed(top)
    git(top, "worktree", "add", "-q", "../linked")
    return top.parent / "linked"


def sparse(top: Path) -> Path:
    """Give a sparse checkout, with flags on files that make git ignore their changes."""
    committed(top)
    write(top / "far" / "away", "not on the disk\n")
    git(top, "add", "far")
    git(top, "commit", "-qm", "far")
    git(top, "sparse-checkout", "set", "near")
    write(top / "assumed", "unchanged\n")
    git(top, "add", "--sparse", "assumed")
    git(top, "update-index", "--assume-unchanged", "assumed")
    write(top / "assumed", "changed all the same\n")
    return top


def sha256(top: Path) -> Path:
    """Give a repository with SHA-256 object names."""
    git(top, "init", "-q", "--object-format=sha256")
    write(top / "a", "a")
    git(top, "add", "a")
    git(top, "commit", "-qm", "one")
    return top


def converting(top: Path) -> Path:
    """Give a repository in which git converts the contents of files on the way in and out."""
    git(top, "init", "-q")
    git(top, "config", "core.autocrlf", "true")
    git(top, "config", "filter.broken.clean", "false")
    git(top, "config", "filter.broken.required", "true")
    git(top, "config", "filter.upper.clean", "tr a-z A-Z")
    write(
        top / ".gitattributes",
        "*.crlf text eol=crlf\n*.id ident\n*.up filter=upper\n*.bad filter=broken\n*.u working-tree-encoding=UTF-16\n",
    )
    write(top / ".git" / "info" / "attributes", "*.dat text eol=lf\n")
    for name in ("x.crlf", "x.id", "x.up", "x.dat", "x.txt"):
        write(top / name, b"a\r\nb\nc\r\n$Id: foo$ \r\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    write(top / "x.bad", "this one git could not even add")
    write(top / "x.u", b"no UTF-16")
    return top


def fill(top: Path) -> None:
    """Add files of all kinds to a working tree, tracked, untracked and ignored."""
    write(top / ".gitignore", "ignored*\n!ignored-not\n")
    write(top / "ignored", "ignored before\n")
    write(top / "ignored-not", "let in\n")
    write(top / "untracked" / "deep" / "file", "untracked\n")
    write(top / "binary", bytes(range(256)) * 50)
    write(top / "crlf", b"a\r\nb\nc\r")
    write(top / "empty")
    write(top / "program", "#!/bin/sh\n").chmod(0o755)
    write(odd(top, b"new\nline \xff\xfe 'quoted\" \t\\"), "odd name")
    write(top / "-dash", "x")
    write(top / ":(top)magic*", "x")
    write(top / "Case", "upper")
    write(top / "case", "lower")
    (top / "link").symlink_to("binary")
    (top / "broken link").symlink_to("nowhere\n")
    (top / "link to directory").symlink_to("untracked")
    write(top / "becomes a directory", "file")
    write(top / "becomes a file" / "x", "x")
    write(top / "becomes a link" / "x", "x")
    write(top / ".agent" / "sessions" / "live.jsonl", "before\n")


def wreck(top: Path) -> None:
    """Change everything that `fill` made, as an agent might."""
    for path in top.iterdir():
        if path.name not in (".git", "ignored", ".agent", "tracked.txt", ".gitignore"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name < "l":
                path.unlink()
            else:
                write(path, "changed\n") if not path.is_symlink() else path.unlink()
    write(top / "ignored", "ignored after\n")
    write(top / "becomes a directory" / "y" / "z", "z")
    write(top / "becomes a file", "x")
    (top / "becomes a link").symlink_to(".")
    write(top / "new" / "file", "new")
    write(odd(top, b"new \xe9"), "new")
    write(top / ".gitignore", "ignored*\n!ignored-not\nnew-rule\n")
    write(top / ".agent" / "sessions" / "live.jsonl", "before\nafter\n")


def saved_part(found: Leaves) -> Leaves:
    """Return the part of a tree of `fill` that a checkpoint saves."""
    return {path: leaf for path, leaf in found.items() if path != "ignored" and not path.startswith(".agent/sessions")}


@pytest.mark.parametrize(
    ("make", "where"),
    [
        *[(make, ".") for make in (unborn, committed, locked, merging, linked, sparse, sha256, converting)],
        (committed, "untracked"),
    ],
)
async def test_a_restored_working_tree_equals_the_checkpoint_bit_by_bit(
    project: Path, make: Callable[[Path], Path], where: str
) -> None:
    """In each state of a repository, ignored files, index, stash, HEAD and session stay, and undo works."""
    top = make(project)
    fill(top)
    cwd = top / where
    person, before = theirs(top), leaves(top)
    saved = await checkpoints.create(cwd, "session", 3)
    assert saved.skipped == (Skipped(".agent/sessions/live.jsonl", "left alone"),)
    assert (theirs(top), leaves(top)) == (person, before)

    wreck(top)
    cwd.mkdir(exist_ok=True)
    after = leaves(top)
    done = await checkpoints.restore(cwd, saved)
    assert done.left == ()
    assert saved_part(leaves(top)) == saved_part(before)
    assert (top / "ignored").read_text() == "ignored after\n"
    assert (top / ".agent/sessions/live.jsonl").read_text() == "before\nafter\n"
    assert theirs(top) == person
    assert (await checkpoints.diff(cwd, saved)).changes == ()

    undone = await checkpoints.undo(cwd)
    assert (undone.left, leaves(top)) == ((), after)
    assert theirs(top) == person
    await checkpoints.undo(cwd)
    assert saved_part(leaves(top)) == saved_part(before)


NAMES = st.sampled_from(
    ["a", "b", "B", "a b", "é", "\n", "\udcff", "-x", "*", ":!a", "a.txt", "git~1", ".gitattributes"]
)
CONTENTS = st.binary(max_size=12) | st.sampled_from([b"a\r\nb\n", b"* text=auto eol=crlf\n", b"*.txt ident\n", b"$Id$"])
LEAF = st.tuples(st.sampled_from(["file", "program"]), CONTENTS) | st.tuples(
    st.just("link"), st.sampled_from([b"a", b"..", b"b/a", b"/nowhere"])
)
TREE: Any = st.recursive(
    st.dictionaries(NAMES, LEAF, max_size=4),
    lambda inner: st.dictionaries(NAMES, LEAF | inner, max_size=4),
    max_leaves=12,
)


def plant(top: str, tree: dict[str, Any]) -> None:
    """Write the files of a tree into a directory."""
    for name, what in tree.items():
        path = os.path.join(top, name)
        if isinstance(what, dict):
            os.mkdir(path)
            plant(path, what)
        elif what[0] == "link":
            os.symlink(what[1], os.fsencode(path))
        else:
            Path(path).write_bytes(what[1])
            os.chmod(path, 0o755 if what[0] == "program" else 0o644)


def clear(top: str) -> None:
    """Empty a working tree."""
    for name in os.listdir(top):
        path = os.path.join(top, name)
        if os.path.isdir(path) and not os.path.islink(path):
            if name != ".git":
                shutil.rmtree(path)
        else:
            os.unlink(path)


@examples(20)
@given(one=TREE, other=TREE)
async def test_any_tree_comes_back_from_any_other(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Odd names, symlinks, permissions and attributes come back, and so do files that became directories."""
    with tempfile.TemporaryDirectory() as top:
        git(top, "init", "-q")
        plant(top, one)
        first = leaves(top)
        saved = await checkpoints.create(top, "s", 0)
        clear(top)
        plant(top, other)
        second = leaves(top)
        assert (await checkpoints.restore(top, saved)).left == ()
        assert leaves(top) == first
        assert (await checkpoints.undo(top)).left == ()
        assert leaves(top) == second


# ---- skipped files ---------------------------------------------------------------------------------------------------


async def test_a_huge_untracked_file_is_left_out_and_said_a_tracked_one_is_not(repo: Path) -> None:
    """The limit is in bytes; a restore neither deletes a skipped file nor writes over it."""
    write(repo / "huge", bytes(2000))
    write(repo / "tracked.txt", bytes(2000))
    write(repo / "small", bytes(1000))
    limit: dict[str, Any] = {"max_file_size": 1000}
    saved = await checkpoints.create(repo, "s", 0, **limit)
    [skipped] = saved.skipped
    assert (skipped.path, skipped.reason) == ("huge", "untracked and large: 0 MB, and the limit is 0.000953674 MB")
    write(repo / "huge", "small now")
    write(repo / "small", bytes(3000))
    done = await checkpoints.restore(repo, saved, **limit)
    assert (repo / "huge").read_text() == "small now"
    assert [str(each) for each in done.left] == [f"huge: is not in the checkpoint: {skipped.reason}"]
    assert (repo / "small").read_bytes() == bytes(1000)
    await checkpoints.undo(repo)
    # The file was too large for a checkpoint, so undo leaves it alone.
    assert (repo / "small").read_bytes() == bytes(3000)


async def test_repositories_inside_are_saved_too(repo: Path, tmp_path: Path) -> None:
    """With and without a commit, and submodules.  A restore does not touch their commits."""
    for name in ("nested", "unborn"):
        (repo / name).mkdir()
        git(repo / name, "init", "-q")
        write(repo / name / "file", "before")
    git(repo / "nested", "add", "-A")
    git(repo / "nested", "commit", "-qm", "one")
    git(repo, "clone", "-q", "nested", str(tmp_path / "origin"))
    git(repo, "submodule", "--quiet", "add", str(tmp_path / "origin"), "module")
    saved = await checkpoints.create(repo, "s", 0)
    assert saved.skipped == ()
    for name in ("nested", "unborn", "module"):
        write(repo / name / "file", "after")
    git(repo / "nested", "commit", "-qam", "two")
    write(repo / ".gitmodules", "changed")
    done = await checkpoints.restore(repo, saved)
    assert [(repo / name / "file").read_text() for name in ("nested", "unborn", "module")] == ["before"] * 3
    assert done.written == (".gitmodules", "module/file", "nested/file", "unborn/file")
    assert git(repo / "nested", "log", "--format=%s").split() == ["two", "one"]


async def test_files_come_back_where_a_repository_appeared(repo: Path) -> None:
    """The repository is named and keeps its commits.  The restore can be taken back."""
    write(repo / "sub" / "file", "before")
    saved = await checkpoints.create(repo, "s", 0)
    shutil.rmtree(repo / "sub")
    await checkpoints.create(repo, "s", 1)
    (repo / "sub").mkdir()
    git(repo / "sub", "init", "-q")
    write(repo / "sub" / "file", "its own")
    git(repo / "sub", "add", "-A")
    git(repo / "sub", "commit", "-qm", "its own")
    done = await checkpoints.restore(repo, saved)
    assert [str(each) for each in done.left] == [
        "sub/: is a git repository of its own, which a restore does not delete"
    ]
    assert (repo / "sub" / "file").read_text() == "before"
    assert git(repo / "sub", "log", "--format=%s").strip() == "its own"
    await checkpoints.undo(repo)
    assert (repo / "sub" / "file").read_text() == "its own"


async def test_a_pipe_in_the_place_of_a_file_is_said_and_nothing_hangs(repo: Path) -> None:
    """A pipe is neither a file nor a symlink, so it is skipped."""
    await checkpoints.create(repo, "s", 0)
    (repo / "tracked.txt").unlink()
    os.mkfifo(repo / "tracked.txt")
    with anyio.fail_after(PATIENCE):
        assert await reasons(repo) == {"tracked.txt": "neither a file nor a symlink"}


async def test_what_cannot_be_read_is_said(repo: Path) -> None:
    """A file and a directory without read permission are skipped, with the reason."""
    write(repo / "secret", "x").chmod(0)
    if os.access(repo / "secret", os.R_OK):
        pytest.skip("root reads everything; try: setpriv --bounding-set=-dac_override,-dac_read_search")
    write(repo / "closed" / "x", "x")
    (repo / "closed").chmod(0)
    try:
        assert await reasons(repo) == {
            "closed/": "Permission denied",
            "secret": "cannot be read: Permission denied",
        }
    finally:
        (repo / "closed").chmod(0o755)


async def test_one_path_that_git_refuses_does_not_keep_the_others_from_being_saved(repo: Path) -> None:
    """A file may vanish while git reads it; here it lies beyond a symlink."""
    write(repo / "directory" / "x", "x")
    (repo / "link").symlink_to("directory")
    worktree = await open_worktree(repo)
    async with worktree.locked():
        skipped = await save(worktree, ["tracked.txt", "link/x", "directory/x"])
        listed = (await worktree.git("ls-files")).out.decode().split()
    assert skipped == [Skipped("link/x", "cannot be saved: 'link/x' is beyond a symbolic link")]
    assert listed == ["directory/x", "tracked.txt"]


async def test_paths_to_leave_alone_are_neither_saved_nor_touched(repo: Path) -> None:
    """Files and directories, absolute or relative to the given directory."""
    write(repo / "sub" / "log", "before")
    write(repo / "data" / "x", "before")
    leave = ["log", str(repo / "data")]
    saved = await checkpoints.create(repo / "sub", "s", 0, leave=leave)
    assert saved.skipped == (Skipped("data/x", "left alone"), Skipped("sub/log", "left alone"))
    write(repo / "sub" / "log", "after")
    write(repo / "data" / "y", "after")
    assert (await checkpoints.diff(repo / "sub", saved, leave=leave)).changes == ()
    done = await checkpoints.restore(repo / "sub", saved, leave=leave)
    assert ((repo / "sub" / "log").read_text(), done.written, done.deleted) == ("after", (), ())
    before = await checkpoints.create(repo, "s", 1)
    write(repo / "data" / "y", "again")
    assert (await checkpoints.restore(repo, before, leave=["data"])).left == (Skipped("data/y", "left alone"),)


# ---- ignored files ---------------------------------------------------------------------------------------------------


async def test_a_file_that_was_ignored_survives_a_restore_when_its_rule_is_gone_now(repo: Path) -> None:
    """Without `.gitignore` it looks like a new file, but it was ignored when the checkpoint was made."""
    write(repo / "sub" / ".gitignore", "secret\n")
    write(repo / "sub" / "secret", "precious")
    saved = await checkpoints.create(repo, "s", 0)
    (repo / "sub" / ".gitignore").unlink()
    write(repo / "sub" / "new", "new")
    done = await checkpoints.restore(repo, saved)
    assert (repo / "sub" / "secret").read_text() == "precious"
    assert [str(each) for each in done.left] == ["sub/secret: was ignored by git when the checkpoint was made"]
    assert (done.written, done.deleted) == (("sub/.gitignore",), ("sub/new",))


async def test_a_file_that_is_ignored_now_and_was_not_comes_back_and_undo_knows_it(repo: Path) -> None:
    """A restore saves each file that it writes over, also an ignored one."""
    write(repo / "notes", "before")
    saved = await checkpoints.create(repo, "s", 0)
    write(repo / ".gitignore", "notes\n")
    write(repo / "notes", "after")
    later = await checkpoints.create(repo, "s", 1)
    assert saved_names(repo, later.commit) == [".gitignore", "tracked.txt"]
    await checkpoints.restore(repo, saved)
    assert (repo / "notes").read_text() == "before"
    await checkpoints.undo(repo)
    assert ((repo / "notes").read_text(), (repo / ".gitignore").exists()) == ("after", True)


async def test_an_ignored_file_that_the_person_tracks_is_saved(repo: Path) -> None:
    """A rule of the person's settings counts like a rule in `.gitignore`."""
    git(repo, "config", "core.excludesFile", "../rules")
    write(repo.parent / "rules", "*.log\n")
    write(repo / "other.log", "ignored")
    write(repo / "kept.log", "before")
    git(repo, "add", "-f", "kept.log")
    saved = await checkpoints.create(repo, "s", 0)
    write(repo / "kept.log", "after")
    done = await checkpoints.restore(repo, saved)
    assert (repo / "kept.log").read_text() == "before"
    assert (done.written, done.deleted, done.left) == (("kept.log",), (), ())
    assert saved_names(repo, saved.commit) == ["kept.log", "tracked.txt"]


async def test_what_is_ignored_and_in_the_way_stays_and_is_said(repo: Path) -> None:
    """An ignored directory in place of a file, and an ignored file and symlink in place of directories, stay."""
    for path in ("file", "directory/x", "deep/directory/x", "empty", "linked/x"):
        write(repo / path, "before")
    saved = await checkpoints.create(repo, "s", 0)
    for path in ("file", "empty"):
        (repo / path).unlink()
    for path in ("directory", "deep", "linked"):
        shutil.rmtree(repo / path)
    write(repo / ".git" / "info" / "exclude", "mine\ndirectory\ndeep\nlinked\n")
    write(repo / "file" / "mine", "mine")
    (repo / "empty" / "inside").mkdir(parents=True)
    write(repo / "directory", "mine")
    write(repo / "deep", "mine")
    (repo / "linked").symlink_to("file")
    done = await checkpoints.restore(repo, saved)
    assert {each.path: each.reason for each in done.left} == {
        "deep/directory/x": "deep is in the way, which is not a directory and not in the checkpoint",
        "directory/x": "directory is in the way, which is not a directory and not in the checkpoint",
        "file": "a directory is in the way, with files that are not in the checkpoint",
        "linked/x": "linked is in the way, which is not a directory and not in the checkpoint",
    }
    assert done.written == ("empty",)
    assert [(repo / path).read_text() for path in ("file/mine", "directory", "deep")] == ["mine"] * 3
    assert (repo / "linked").is_symlink()


# ---- the repository --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.mkdir(), "is not in a git repository, so there are no checkpoints; `git init` makes it one"),
        (lambda path: git(path.parent, "init", "-q", "--bare", path.name), "has no working tree (a bare repository"),
        (lambda path: None, "there is no such directory"),
        (lambda path: write(path / ".git", "gitdir: nowhere"), "not in a git repository"),
        (
            lambda path: (git(path.parent, "init", "-q", "line\nbreak") and 0) or path.symlink_to("line\nbreak"),
            "line break",
        ),
    ],
    ids=["none", "bare", "no directory", "broken", "line break"],
)
async def test_without_a_working_tree_the_error_says_why(
    tmp_path: Path, make: Callable[[Path], object], told: str
) -> None:
    """The error is one line, with the remedy."""
    make(tmp_path / "here")
    with pytest.raises(CheckpointError) as caught:
        await checkpoints.create(tmp_path / "here", "s", 0)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value).replace("line\nbreak", "")


async def test_without_git_the_error_says_so(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git is missing, or a file of that name is not a program, or not one for this machine."""
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    with pytest.raises(CheckpointError, match="git is not installed, and checkpoints need it"):
        await checkpoints.create(repo, "s", 0)
    write(tmp_path / "tools" / "git", "").chmod(0o644)
    with pytest.raises(CheckpointError, match="git is not installed, and checkpoints need it"):
        await checkpoints.create(repo, "s", 0)
    (tmp_path / "tools" / "git").chmod(0o755)
    with pytest.raises(CheckpointError, match="/tools/git cannot be run: Exec format error"):
        await checkpoints.list(repo)


async def test_a_repository_that_takes_no_files_is_told(repo: Path) -> None:
    """The error names the directory."""
    write(store(repo), "in the way")
    with pytest.raises(CheckpointError, match=f"{store(repo).name}: the checkpoints cannot be used: "):
        await checkpoints.create(repo, "s", 0)


@pytest.mark.parametrize(("session", "index"), [("", 0), ("s", -1), ("s", "0"), (None, 0)])
async def test_a_checkpoint_needs_a_session_and_an_entry_index(repo: Path, session: Any, index: Any) -> None:
    """A checkpoint without them could never be found again."""
    with pytest.raises(CheckpointError, match="needs a session id and an entry index"):
        await checkpoints.create(repo, session, index)


async def test_no_hook_of_the_repository_runs_and_no_environment_misleads(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent itself may have been started from a git hook."""
    for name in ("reference-transaction", "post-index-change", "post-checkout", "pre-auto-gc"):
        write(repo / ".git" / "hooks" / name, f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n").chmod(0o755)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    saved = await checkpoints.create(repo, "s", 0)
    write(repo / "tracked.txt", "changed")
    await checkpoints.restore(repo, saved)
    assert (repo / "tracked.txt").read_text() == "one\n"
    assert not (tmp_path / "hook-ran").exists()


@pytest.mark.parametrize("damage", ["garbage", "objects gone"])
async def test_a_damaged_index_of_ours_is_made_anew(repo: Path, damage: str) -> None:
    """git can make a new private index from the files."""
    write(repo / "new", "new")
    saved = await checkpoints.create(repo, "s", 0)
    if damage == "garbage":
        write(store(repo) / "index", "garbage")
    else:
        shutil.rmtree(store(repo) / "objects")
    assert (await checkpoints.create(repo, "s", 1)).tree == saved.tree


async def test_an_error_without_an_index_to_blame_is_told(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint is not tried again for ever."""
    shutil.rmtree(store(repo), ignore_errors=True)
    broken = f'case "$*" in *ls-files*) echo "fatal: a bad day" >&2; exit 128; esac; exec {shutil.which("git")} "$@"'
    write(tmp_path / "tools" / "git", f"#!/bin/sh\n{broken}\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    with pytest.raises(CheckpointError, match=r"git failed: fatal: a bad day"):
        await checkpoints.create(repo, "s", 0)


async def test_checkpoints_at_once_wait_for_one_another(repo: Path) -> None:
    """Several tasks make checkpoints at once, and so does a task after a process that was killed in the middle."""
    await checkpoints.create(repo, "s", 0)
    write(store(repo) / "index.lock", "left by a git that was killed")
    async with anyio.create_task_group() as tasks:
        for index in range(1, 6):
            tasks.start_soon(checkpoints.create, repo, "s", index)
    found = await checkpoints.list(repo, "s")
    assert sorted(each.entry_index or 0 for each in found) == [0, 1, 2, 3, 4, 5]
    assert len({each.tree for each in found}) == 1


@pytest.mark.parametrize("seconds", [0, 0.01, 0.03, 0.06, 0.1])
async def test_one_that_is_cancelled_in_the_middle_leaves_nothing_in_the_way(repo: Path, seconds: float) -> None:
    """At each step of a checkpoint and of a restore; the undo of a restore exists before any file changes."""
    write(repo / "note", "before")
    with anyio.move_on_after(seconds):
        await checkpoints.create(repo, "s", 1)
    saved = await checkpoints.create(repo, "s", 2)
    write(repo / "note", "after")
    with anyio.move_on_after(seconds):
        await checkpoints.restore(repo, saved)
    # The restore was cancelled after it had saved the present files.
    if any(each.entry_index is None for each in await checkpoints.list(repo)):
        await checkpoints.undo(repo)
    assert (repo / "note").read_text() == "after"
    await checkpoints.restore(repo, saved)
    assert (repo / "note").read_text() == "before"


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give a function that lets one of git's commands fail, as on a broken disk."""
    real = shutil.which("git")

    def fail(command: str) -> None:
        script = f'case " $* " in *" {command} "*) echo "fatal: Input/output error" >&2; exit 128;; esac'
        write(tmp_path / "bin" / "git", f'#!/bin/sh\n{script}\nexec {real} "$@"\n').chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")

    return fail


@pytest.mark.parametrize("command", ["update-index", "write-tree", "commit-tree", "update-ref", "ls-files"])
async def test_when_git_fails_while_saving_the_error_has_its_words_and_nothing_is_restored(
    repo: Path, failing: Callable[[str], None], command: str
) -> None:
    """A restore never writes over a file that cannot be saved."""
    saved = await checkpoints.create(repo, "s", 0)
    write(repo / "tracked.txt", "changed")
    failing(command)
    for act in (checkpoints.create(repo, "s", 1), checkpoints.restore(repo, saved)):
        with pytest.raises(CheckpointError, match="git failed: fatal: Input/output error"):
            await act
    assert (repo / "tracked.txt").read_text() == "changed"


async def test_when_git_cannot_write_a_file_that_is_said_and_undo_is_there(
    repo: Path, failing: Callable[[str], None]
) -> None:
    """Each file has its reason; when git fails at the very end, the restore has an error."""
    saved = await checkpoints.create(repo, "s", 0)
    write(repo / "tracked.txt", "changed")
    write(repo / "new", "new")
    failing("cat-file --batch")
    done = await checkpoints.restore(repo, saved)
    assert done.failed == (Skipped("tracked.txt", "cannot be written: fatal: Input/output error"),)
    assert (done.written, done.deleted, done.left) == ((), ("new",), ())
    write(repo / "new", "new")
    failing("check-ignore")
    text = "stopped in the middle (0 files written, 0 files deleted), and undo takes it back: "
    with pytest.raises(CheckpointError, match=f"{re.escape(text)}.*git failed: fatal: Input"):
        await checkpoints.restore(repo, saved)
    failing("nothing")
    await checkpoints.undo(repo)
    assert leaves(repo) == {"tracked.txt": ("file", b"changed"), "new": ("file", b"new")}


async def test_a_restore_belongs_to_its_working_tree(project: Path) -> None:
    """Files of one working tree are never put into another one, also when the first has moved away."""
    other = linked(project)
    saved = await checkpoints.create(other, "s", 0)
    elsewhere = r"this checkpoint is one of .*linked, not of .*project: restore it there"
    with pytest.raises(CheckpointError, match=f"{elsewhere}$"):
        await checkpoints.restore(project, saved)
    moved = other.rename(other.parent / "moved")
    with pytest.raises(CheckpointError, match=f"{elsewhere}, after you have moved the working tree back"):
        await checkpoints.restore(project, saved)
    moved.rename(other)
    assert (await checkpoints.restore(other, saved)).left == ()


async def test_what_a_repository_ignores_is_left_alone_also_after_it_was_moved(project: Path) -> None:
    """A working tree that was moved has new checkpoints, by the rules of its own `.git/info/exclude`."""
    git(project, "init", "-q", "here")
    here, there = project / "here", project / "there"
    write(here / ".git" / "info" / "exclude", "secret\n")
    await checkpoints.create(here, "s", 0)
    here.rename(there)
    write(there / "file", "1")
    saved = await checkpoints.create(there, "s", 0)
    write(there / "secret", "key")
    write(there / "file", "2")
    done = await checkpoints.restore(there, saved)
    assert (done.written, done.deleted) == (("file",), ())
    assert (there / "secret").read_text() == "key"


@pytest.mark.parametrize("name", ["HEAD", "config", "info/attributes"])
async def test_a_kill_while_our_directory_is_made_does_no_harm(repo: Path, name: str) -> None:
    """A file that was created but not written is written later."""
    saved = await checkpoints.create(repo, "s", 0)
    write(store(repo) / name, "")
    assert (await checkpoints.create(repo, "s", 1)).tree == saved.tree
    assert (store(repo) / name).read_text()


async def test_a_checkpoint_that_git_has_cleaned_up_is_told_and_nothing_changes(repo: Path) -> None:
    """A person pruned the checkpoint while a hook still held it."""
    write(repo / "new", "new")
    saved = await checkpoints.create(repo, "s", 0)
    await checkpoints.prune(repo)
    (store(repo) / "index").unlink()
    shutil.rmtree(store(repo) / "objects")
    write(repo / "new", "newer")
    with pytest.raises(CheckpointError, match="checkpoint 0 is gone"):
        await checkpoints.restore(repo, saved)
    assert (repo / "new").read_text() == "newer"


async def test_rights_beyond_executable_are_those_of_the_file_that_is_replaced(repo: Path) -> None:
    """A restore never makes a private file readable for all."""
    write(repo / "key", "before").chmod(0o600)
    write(repo / "script", "before").chmod(0o700)
    saved = await checkpoints.create(repo, "s", 0)
    write(repo / "key", "after")
    write(repo / "script", "after").chmod(0o600)
    await checkpoints.restore(repo, saved)
    assert [(repo / name).stat().st_mode & 0o777 for name in ("key", "script")] == [0o600, 0o700]


async def test_the_directory_one_is_in_is_kept_though_it_becomes_empty(repo: Path) -> None:
    """The agent's own working directory stays."""
    saved = await checkpoints.create(repo, "s", 0)
    write(repo / "sub" / "here" / "deep" / "file", "new")
    await checkpoints.restore(repo / "sub" / "here", saved)
    assert [path.name for path in (repo / "sub").rglob("*")] == ["here"]


# ---- finding them again ----------------------------------------------------------------------------------------------


async def test_checkpoints_are_listed_by_session_in_order_and_found_for_a_branch(repo: Path) -> None:
    """A session's id may be any text, and a later process finds the same checkpoints."""
    for index in (3, 7, 12):
        await checkpoints.create(repo, "a/b.lock ..~^:é", index)
    await checkpoints.create(repo, "other", 5)
    await checkpoints.create(repo, "other", 5)
    git(repo, "update-ref", "refs/agent-hooks/foreign/thing", "HEAD")
    git(repo, "update-ref", "refs/agent-hooks/foreign/1", "HEAD")
    found = await checkpoints.list(repo, "a/b.lock ..~^:é")
    assert [each.entry_index for each in found] == [3, 7, 12]
    assert {each.session_id for each in found} == {"a/b.lock ..~^:é"}
    assert len(await checkpoints.list(repo)) == 4
    for target, expected in ((0, 3), (3, 7), (6, 7), (11, 12), (12, None)):
        chosen = checkpoints.find_for_branch(reversed(found), target)
        assert (chosen and chosen.entry_index) == expected


async def test_a_restore_chooses_the_right_one_and_undo_reaches_every_state(repo: Path) -> None:
    """Each restore saves the present files; an undo of an undo is a redo."""
    note = repo / "note"
    saved = []
    for index in range(3):
        write(note, f"{index}")
        saved.append(await checkpoints.create(repo, "s", index))
    write(note, "unsaved")
    await checkpoints.restore(repo, saved[1])
    assert note.read_text() == "1"
    await checkpoints.restore(repo, saved[0])
    assert note.read_text() == "0"
    await checkpoints.undo(repo, "s")
    assert note.read_text() == "1"
    await checkpoints.undo(repo, "s")
    assert note.read_text() == "0"
    first = next(each for each in await checkpoints.list(repo) if each.name == "undo-1")
    assert first.entry_index is None
    await checkpoints.restore(repo, first)
    assert note.read_text() == "unsaved"
    with pytest.raises(CheckpointError, match="nothing to undo"):
        await checkpoints.undo(repo, "another session")


async def test_a_branched_session_inherits_what_it_has_in_common(repo: Path) -> None:
    """The person can branch back further from the new session."""
    for index in (2, 4, 6):
        await checkpoints.create(repo, "old", index)
    await checkpoints.inherit(repo, "old", "new", up_to=4)
    assert [each.entry_index for each in await checkpoints.list(repo, "new")] == [2, 4]
    await checkpoints.inherit(repo, "nobody", "new", up_to=4)
    await checkpoints.prune(repo, "old")
    [first, _] = await checkpoints.list(repo, "new")
    assert (await checkpoints.restore(repo, first)).left == ()


async def test_pruning_forgets_the_old_ones_of_each_session(repo: Path) -> None:
    """By age and by number, for one session or for all; index, branches and files stay."""
    person = theirs(repo)
    for session in ("a", "b"):
        for index in range(4):
            await checkpoints.create(repo, session, index)

    async def left() -> list[str]:
        return sorted(f"{each.session_id}{each.name}" for each in await checkpoints.list(repo))

    assert await checkpoints.prune(repo, older_than=3600) == ()
    assert [each.name for each in await checkpoints.prune(repo, "a", keep_last=3)] == ["0"]
    assert await left() == ["a1", "a2", "a3", "b0", "b1", "b2", "b3"]
    await checkpoints.prune(repo, keep_last=1)
    assert await left() == ["a3", "b3"]
    await checkpoints.prune(repo, older_than=0)
    assert await left() == []
    assert theirs(repo) == person


async def test_a_diff_shows_what_changed_since(repo: Path) -> None:
    """The diff includes untracked files and changes no file."""
    saved: Checkpoint = await checkpoints.create(repo, "s", 0)
    write(repo / "tracked.txt", "two\n")
    write(repo / "new", "new\n")
    before = leaves(repo)
    found = await checkpoints.diff(repo, saved)
    assert found.changes == (checkpoints.Change("A", "new"), checkpoints.Change("M", "tracked.txt"))
    assert "-one\n+two\n" in found.patch
    assert leaves(repo) == before
    assert len(await checkpoints.list(repo)) == 1


def test_the_module_is_loaded_when_it_is_wanted() -> None:
    """`import agent_hooks` does not load it, `from agent_hooks import checkpoints` does."""
    code = "import sys, agent_hooks; assert 'agent_hooks.checkpoints' not in sys.modules"
    subprocess.run([sys.executable, "-c", f"{code}; from agent_hooks import checkpoints"], check=True)
    assert sorted(checkpoints.__all__) == sorted(set(checkpoints.__all__))
    assert all(hasattr(checkpoints, name) for name in checkpoints.__all__)
