"""A restore loses nothing: neither the files that are saved while it runs, nor those it had changed when it failed."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Event, Thread

import anyio
import msgspec
import pytest

from agent_hooks import checkpoints
from agent_hooks.checkpoints import Checkpoint, CheckpointError
from agent_hooks.checkpoints.contents import Contents
from agent_hooks.checkpoints.placing import Leaf, place_of
from agent_hooks.turn_notes import store_of
from running import Command
from support import PATIENCE, first_line
from support import until as wait_until

# These tests call git many times, so they run on one backend only.
pytestmark = pytest.mark.anyio
Meanwhile = Callable[[str, str], None]


def files(top: Path) -> dict[str, str]:
    """Return the files of a working tree with their texts; a symlink is shown as an arrow and its target."""
    paths = [path for path in top.rglob("*") if ".git" not in path.parts and (path.is_symlink() or path.is_file())]
    return {
        str(path.relative_to(top)): f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
        for path in paths
    }


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project


@pytest.fixture
def meanwhile(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Give a function that runs a shell script before one of git's commands: the person works during a restore."""
    git = shutil.which("git")

    def run(command: str, script: str) -> None:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\ncase " $* " in *" {command} "*) {script};; esac\nexec {git} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return run


async def edited_since(repo: Path) -> Checkpoint:
    """Return a checkpoint after which the one file was edited."""
    (repo / "note").write_text("old\n")
    saved = await checkpoints.create(repo, "s", 1)
    (repo / "note").write_text("newer\n")
    return saved


# ---- saved meanwhile -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo mine > {path}", id="written in place"),
        pytest.param("echo mine > {path}~; mv {path}~ {path}", id="replaced"),
        pytest.param("rm {path}; echo mine > {path}", id="removed and made"),
    ],
)
@pytest.mark.parametrize("path", ["note", "sub/deep/note", "gone", "new", "link"])
async def test_a_file_that_is_saved_during_a_restore_is_kept_beside_and_named(
    repo: Path, meanwhile: Meanwhile, path: str, script: str
) -> None:
    """Whether the restore writes over it, deletes it or makes it, and however an editor saves."""
    (repo / "sub" / "deep").mkdir(parents=True)
    for name in ("note", "sub/deep/note", "new"):
        (repo / name).write_text("old\n")
    saved = await checkpoints.create(repo, "s", 1)
    for name in ("note", "sub/deep/note", "gone"):
        (repo / name).write_text("newer\n")
    (repo / "link").symlink_to("nowhere")
    (repo / "new").unlink()
    editor = script.format(path=f"'{repo}/{path}'")
    meanwhile("read-tree", f"rm -f '{repo}/link'; {editor}" if path == "link" else f"touch '{repo}/new'; {editor}")
    done = await checkpoints.restore(repo, saved)
    kept = [each for each in done.kept if (repo / each.kept_as).stat().st_size]
    assert [(each.path, (repo / each.kept_as).read_text()) for each in kept] == [(path, "mine\n")]
    assert kept[0].kept_as.startswith(f"{path}.saved-during-restore-")
    assert str(kept[0]) == f"{path} was saved during the restore; that file is now {kept[0].kept_as}"
    now = {name: text for name, text in files(repo).items() if ".saved-during-restore-" not in name}
    assert now == dict.fromkeys(["note", "sub/deep/note", "new"], "old\n")
    assert (done.failed, done.left) == ((), ())


async def test_no_later_restore_deletes_a_file_that_was_kept(repo: Path, meanwhile: Meanwhile) -> None:
    """It names the file, until the person has deleted it."""
    saved = await edited_since(repo)
    meanwhile("read-tree", f"echo mine > '{repo}/note'")
    [kept] = (await checkpoints.restore(repo, saved)).kept
    meanwhile("nothing", ":")
    undone = await checkpoints.undo(repo)
    assert files(repo) == {"note": "newer\n", kept.kept_as: "mine\n"}
    text = f"{kept.kept_as}: was kept by an earlier restore of note; delete it when you do not need it"
    assert [str(each) for each in undone.left] == [text]


async def test_the_command_names_the_kept_file(repo: Path, command: Command, meanwhile: Meanwhile) -> None:
    """On stderr; the restore itself has succeeded."""
    await edited_since(repo)
    meanwhile("read-tree", f"echo mine > '{repo}/note'")
    done = command("checkpoints", "restore", "--yes")
    [name] = [name for name in files(repo) if name != "note"]
    assert done.stderr == f"kept: note was saved during the restore; that file is now {name}\n"
    assert "1 file written, 0 files deleted;" in done.stdout


async def test_a_directory_that_takes_the_place_of_a_file_meanwhile_stays(repo: Path, meanwhile: Meanwhile) -> None:
    """The restore of that file fails, and the command's result says so."""
    saved = await edited_since(repo)
    meanwhile("cat-file --batch", f"rm '{repo}/note'; mkdir '{repo}/note'; echo mine > '{repo}/note/file'")
    done = await checkpoints.restore(repo, saved)
    assert [str(each) for each in done.failed] == ["note: cannot be written: a directory has taken its place"]
    assert files(repo) == {"note/file": "mine\n"}


async def test_a_link_that_takes_the_place_of_a_directory_meanwhile_leads_nowhere(
    repo: Path, meanwhile: Meanwhile, tmp_path: Path
) -> None:
    """Nothing is written outside of the working tree, and nothing is deleted there."""
    (repo / "sub").mkdir()
    (repo / "sub" / "note").write_text("old\n")
    saved = await checkpoints.create(repo, "s", 1)
    (repo / "sub" / "note").write_text("newer\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "note").write_text("theirs\n")
    meanwhile("cat-file --batch", f"mv '{repo}/sub' '{repo}/moved'; ln -s '{tmp_path}/outside' '{repo}/sub'")
    done = await checkpoints.restore(repo, saved)
    assert [each.path for each in done.failed] == ["sub/note"]
    assert files(tmp_path / "outside") == {"note": "theirs\n"}


def leaf_of(data: bytes, top: Path) -> Leaf:
    """Return the leaf that git would save for a file with these bytes."""
    line = ["git", "hash-object", "--stdin"]
    return Leaf(
        "100644", subprocess.run(line, cwd=top, input=data, capture_output=True, check=True).stdout.decode().strip()
    )


@pytest.mark.parametrize("links", [True, False])
async def test_a_person_who_saves_all_the_time_finds_each_text(
    repo: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text that was saved under the name is there, or is the text that the snapshot had, or was saved over."""
    if not links:

        def refuse(*args: object, **options: object) -> None:
            raise PermissionError(1, "no hard links here")

        monkeypatch.setattr(os, "link", refuse)
    note, now = repo / "note", leaf_of(b"now", repo)
    stop = Event()
    saved: list[str] = []

    def save() -> None:
        while not stop.is_set():
            text = f"mine {len(saved)}"
            (repo / "draft").write_text(text)
            saved.append(text)
            os.rename(repo / "draft", note)

    person = Thread(target=save)
    person.start()
    try:
        lost = set()
        for _ in range(100):
            before = len(saved)
            wait_until(lambda before=before: len(saved) > before + 1)  # type: ignore[misc]  # bound now
            with place_of(str(repo), "note", "sha1") as place:
                file, draft = place.draft(executable=False)
                os.write(file, b"restored")
                os.close(file)
                place.put(draft, now, link=False)
                place.drop(draft)
                lost |= {
                    text for each in place.kept if not (text := (repo / each).read_text()).startswith(("mine", "re"))
                }
    finally:
        stop.set()
        person.join(PATIENCE)
    assert not lost
    names = [path.name for path in repo.iterdir() if path.name not in (".git", "draft", "note")]
    assert names
    assert all(".saved-during-restore-" in name for name in names)


# ---- half done -------------------------------------------------------------------------------------------------------


async def test_a_file_that_does_not_fit_on_the_disk_is_named_and_no_file_is_cut(repo: Path, command: Command) -> None:
    """The command counts the files, exits with 1, and undo brings back the state before.

    A limit on the size of files stands for the full disk.
    """
    big = "x" * 3_000_000
    (repo / "big").write_text(big)
    (repo / "small").write_text("old")
    await checkpoints.create(repo, "s", 1)
    for name in ("big", "small", "new"):
        (repo / name).write_text("now")
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))"
    line = command.line("checkpoints", "restore", "--yes", first=limit)
    done = subprocess.run(line, cwd=repo, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    text = "restored a part of 1 of session s: 1 file written, 1 file deleted, 1 file failed; "
    assert done.stdout.splitlines()[-1] == f"{text}`agent-hooks checkpoints undo` takes it back"
    assert done.stderr == "failed: big: cannot be written: File too large\n"
    assert files(repo) == {"big": "now", "small": "old"}
    await checkpoints.undo(repo)
    assert files(repo) == dict.fromkeys(["big", "small", "new"], "now")


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root writes to every directory")
async def test_a_file_of_an_owner_without_a_number_in_a_container_is_restored(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a user namespace, the system refuses to give a file to a user of the outside: EINVAL, also for root."""
    (repo / "file").write_text("old")
    saved = await checkpoints.create(repo, "s", 1)
    (repo / "file").write_text("new")

    def refuse(fd: int, uid: int, gid: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fchown", refuse)
    restored = await checkpoints.restore(repo, saved)
    assert restored.written == ("file",)
    assert files(repo) == {"file": "old"}


async def test_a_draft_that_gets_no_rights_is_removed_and_closed(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that refuses rights leaves neither drafts nor open files."""
    (repo / "file").write_text("old")
    saved = await checkpoints.create(repo, "s", 1)
    (repo / "file").write_text("new")

    def refuse(fd: int, mode: int) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchmod", refuse)
    before = len(os.listdir("/proc/self/fd"))
    restored = await checkpoints.restore(repo, saved)
    assert [str(each) for each in restored.failed] == ["file: cannot be written: Operation not permitted"]
    assert files(repo) == {"file": "new"}
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_read_only_directory_is_named_and_the_rest_is_restored(repo: Path, command: Command) -> None:
    """Neither a write nor a deletion there is counted as done."""
    (repo / "closed").mkdir()
    for name in ("open", "closed/note"):
        (repo / name).write_text("old")
    await checkpoints.create(repo, "s", 1)
    for name in ("open", "closed/note", "closed/new"):
        (repo / name).write_text("now")
    (repo / "closed").chmod(0o555)
    unprivileged = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    line = [*unprivileged, *command.line("checkpoints", "restore", "--yes")]
    done = subprocess.run(line, cwd=repo, capture_output=True, text=True, timeout=PATIENCE)
    (repo / "closed").chmod(0o755)
    assert done.stderr.splitlines() == [
        "failed: closed/new: cannot be deleted: Permission denied",
        "failed: closed/note: cannot be written: Permission denied",
    ]
    assert (done.returncode, "1 file written, 0 files deleted, 2 files failed" in done.stdout) == (1, True)
    assert files(repo) == {"open": "old", "closed/note": "now", "closed/new": "now"}


RESTORE = """
import sys, anyio
from agent_hooks import checkpoints

async def main():
    [*_, saved] = [each for each in await checkpoints.list(sys.argv[1]) if each.entry_index is not None]
    print("begins", flush=True)
    await checkpoints.restore(sys.argv[1], saved)

anyio.run(main)
"""


async def test_undo_brings_back_the_state_before_a_killed_restore(repo: Path) -> None:
    """A restore is killed at some moments; `python -m checks.crash` tries each write.

    After each kill, every file is whole, and if the restore had begun, undo brings back the state before it.
    """
    random = Random(1)
    old = {f"d{number % 7}/f{number}": f"old {number}\n" * 500 for number in range(150)}
    now = {**{f"d{number % 5}/f{number}": f"now {number}\n" * 500 for number in range(75, 225)}, "d0": "now a file"}
    old = {name: text for name, text in old.items() if not name.startswith("d0/")} | {"d0/x": "old"}
    now = {name: text for name, text in now.items() if not name.startswith("d0/")}

    def put(state: dict[str, str]) -> None:
        for path in repo.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, text in state.items():
            (repo / name).parent.mkdir(exist_ok=True)
            (repo / name).write_text(text)

    put(old)
    await checkpoints.create(repo, "s", 1)
    longest = 0.0
    for number in range(4):
        put(now)
        before = len(await checkpoints.list(repo))
        child = subprocess.Popen([sys.executable, "-c", RESTORE, str(repo)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        first_line(child.stdout)
        begun = anyio.current_time()
        if number:
            await anyio.sleep(random.uniform(0, longest))
            child.send_signal(signal.SIGKILL)
        child.wait(timeout=PATIENCE)
        longest = longest or anyio.current_time() - begun
        child.stdout.close()
        found = files(repo)
        for name, text in found.items():
            whole = {old.get(name), now.get(name), now.get(name.partition(".saved-during-restore-")[0])}
            assert text in whole or ".agent-hooks-" in name, f"{name} is cut"
        if len(await checkpoints.list(repo)) > before:
            await checkpoints.undo(repo)
            assert files(repo) == now, f"after kill {number}"
        else:
            assert found == now


@pytest.mark.parametrize("step", ["renamed", "named"])
async def test_a_kill_between_the_steps_of_one_file_leaves_no_rest_after_the_undo(repo: Path, step: str) -> None:
    """The renamed file is removed by the undo, because it has the bytes that the undo restores."""
    (repo / "note").write_text("old\n")
    await checkpoints.create(repo, "s", 1)
    (repo / "note").write_text("now\n")
    call = {"renamed": "os.link", "named": "os.unlink"}[step]
    die = f"""
import os, signal
real = {call}
{call} = lambda *a, **o: os.kill(os.getpid(), signal.SIGKILL) if {{"dir_fd", "dst_dir_fd"}} & o.keys() else real(*a, **o)
"""
    child = subprocess.run(
        [sys.executable, "-c", f"{die}{RESTORE}", str(repo)], stdout=subprocess.PIPE, timeout=PATIENCE
    )
    assert child.returncode == -signal.SIGKILL
    assert files(repo) != {"note": "now\n"}
    await checkpoints.undo(repo)
    assert files(repo) == {"note": "now\n"}


async def test_an_error_of_git_in_the_middle_counts_the_files(repo: Path, meanwhile: Meanwhile) -> None:
    """The text says how many files were written and deleted by then, and the undo brings them back."""
    for name in (".gitignore", "note"):
        (repo / name).write_text("old\n")
    saved = await checkpoints.create(repo, "s", 1)
    for name in (".gitignore", "note", "new"):
        (repo / name).write_text("now\n")
    meanwhile("check-ignore", "echo 'fatal: broken' >&2; exit 128")
    with pytest.raises(
        CheckpointError, match=r"in the middle \(1 file written, 0 files deleted\), and undo takes it back"
    ):
        await checkpoints.restore(repo, saved)
    assert files(repo) == {".gitignore": "old\n", "note": "now\n", "new": "now\n"}
    meanwhile("nothing", ":")
    await checkpoints.undo(repo)
    assert files(repo) == dict.fromkeys([".gitignore", "note", "new"], "now\n")


async def test_a_file_whose_content_git_has_lost_is_named(repo: Path) -> None:
    """The others are restored."""
    (repo / "lost").write_text("old and lost\n")
    (repo / "note").write_text("old\n")
    saved = await checkpoints.create(repo, "s", 1)
    for name in ("lost", "note"):
        (repo / name).write_text("now\n")
    store = Path(store_of(str(repo)))
    packed = [each.rename(repo.parent / each.name) for each in (store / "objects" / "pack").glob("*.pack")]
    line = ["git", "--git-dir", str(store), "unpack-objects", "-q"]
    subprocess.run(line, input=packed[0].read_bytes(), check=True)
    digest = leaf_of(b"old and lost\n", repo).digest
    (store / "objects" / digest[:2] / digest[2:]).unlink()
    done = await checkpoints.restore(repo, saved)
    reason = "cannot be written: its content is gone from git's object store"
    assert [(each.path, each.reason) for each in done.failed] == [("lost", reason)]
    assert files(repo) == {"lost": "now\n", "note": "old\n"}


async def test_a_tree_that_names_something_else_than_files_writes_none(repo: Path) -> None:
    """A damaged store may hold such a tree: a submodule, or a directory in the place of a file."""
    (repo / "note").write_text("old\n")
    saved = await checkpoints.create(repo, "s", 1)
    raw = b"160000 module\0" + bytes.fromhex(saved.commit) + b"100644 odd\0" + bytes.fromhex(saved.tree)
    line = ["git", "--git-dir", store_of(str(repo)), "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    made = subprocess.run(line, cwd=repo, input=raw, capture_output=True, check=True)
    foreign = msgspec.structs.replace(saved, tree=made.stdout.decode().strip())
    done = await checkpoints.restore(repo, foreign)
    reason = "odd: cannot be written: the checkpoint names another kind of object than a file there"
    assert [str(each) for each in done.failed] == [reason]
    assert (done.written, files(repo)) == ((), {})


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_the_output_of_git_may_be_cut_anywhere(size: int) -> None:
    """Each file gets its own bytes, also an empty one and one that ends in a line break."""

    class Receiver:
        def __init__(self) -> None:
            self.said: list[object] = []

        def begin(self, size: int) -> None:
            self.said.append(size)

        def take(self, chunk: bytes) -> None:
            self.said.append(chunk)

        def end(self) -> None:
            self.said.append("end")

        def fail(self, reason: str) -> None:
            self.said.append(reason)

    receivers = [Receiver() for _ in range(5)]
    contents = Contents(iter(receivers))
    out = b"1 blob 4\na\nb\n\n2 blob 0\n\n3 missing\n4 tree 3\nabc\n5 blob 2\nok\n"
    for start in range(0, len(out), size):
        contents(out[start : start + size])
    told = [b"".join(each for each in one.said if isinstance(each, bytes)) for one in receivers]
    assert told == [b"a\nb\n", b"", b"", b"", b"ok"]
    assert [one.said[0] for one in receivers if isinstance(one.said[0], int)] == [4, 0, 2]
    assert [one.said[-1] for one in receivers] == [
        *("end", "end", "its content is gone from git's object store"),
        *("the checkpoint names another kind of object than a file there", "end"),
    ]
