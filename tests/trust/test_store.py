"""The trust store: damaged in any way it trusts nothing, and no change of it is lost."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_hooks.trust.manifest import TrustError, read_set
from agent_hooks.trust.policy import Trust
from agent_hooks.trust.store import MOST_APPROVALS, Origin, TrustStore
from support import PATIENCE
from trust.approving import agent_file, approve, judged_names, state

APPROVE = """
import sys
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.policy import Trust
store = Trust().store()
for project in sys.argv[1:]:
    store.approve(store.key(project), read_set(project))
"""


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Give another project, which no person has approved."""
    path = tmp_path / "other"
    agent_file(path, text="never")
    return path


@pytest.fixture
def stored(project: Path, home: Path) -> Path:
    """Give the store file, in which the project is approved."""
    agent_file(project)
    approve(project)
    return home / ".agent" / "trust.json"


def run(*projects: Path) -> subprocess.Popen[bytes]:
    """Approve projects, one after another, in a process of its own."""
    return subprocess.Popen([sys.executable, "-c", APPROVE, *map(str, projects)], stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[bytes]) -> bytes:
    """Return the errors of a process, which has ended well."""
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    return errors


def test_a_store_is_read_by_its_owner_only(stored: Path) -> None:
    """The file, and the approved bytes beside it."""
    assert stored.stat().st_mode & 0o077 == 0
    assert (stored.parent / "trust").stat().st_mode & 0o077 == 0


def test_a_store_cut_off_at_any_byte_trusts_nothing_and_denies_every_set(
    stored: Path, project: Path, other: Path
) -> None:
    """Nothing says any more which of the sets were approved."""
    whole = stored.read_bytes()
    for size in range(len(whole) - 1):
        stored.write_bytes(whole[:size])
        sources = Trust().sources(project, str(other))
        found, stranger = sorted(sources.projects, key=lambda each: each.project == str(other))
        assert found.files is None
        assert (found.state, found.blocks) == ("unknown", True), size
        assert (stranger.files, stranger.blocks) == (None, True)
        assert sources.problem is not None
        assert str(stored) in sources.problem
        assert sources.problem in sources.messages
    # Only the newline is missing.
    stored.write_bytes(whole[:-1])
    assert state(project).state == "approved"


def test_a_store_with_any_byte_exchanged_trusts_nothing_that_was_not_approved(
    stored: Path, project: Path, other: Path
) -> None:
    """Another content is never trusted, in any reading of the store."""
    whole = stored.read_bytes()
    agent_file(project, text="changed after the approval")
    for at in range(len(whole)):
        for byte in b'0"\xff':
            stored.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            for each in (project, other):
                found = state(each, each)
                contents = [file.data for file in (found.files or {}).values()]
                assert contents in ([], [b"def register(api): ...\n"]), (at, byte)


DAMAGES = [
    *(b"", b"\0" * 4096, b"not JSON", b"[]", b"{}", b"null", b'{"version": 1}', b'{"version": 1, "projects": []}'),
    *(b'{"version": true, "projects": {}}', b'{"version": "1", "projects": {}}', b"\xef\xbb\xbf{}", b"[" * 200_000),
    *(b'{"version": 1, "projects": {"x": {}}}', b'{"version": 1, "projects": {"x": {"root": 1}}}', b"1" * 5_000),
]


@pytest.mark.parametrize("text", DAMAGES)
def test_a_store_that_is_none_trusts_nothing_and_is_left_as_it_is(stored: Path, project: Path, text: bytes) -> None:
    """A person mends it; no approval overwrites it."""
    stored.write_bytes(text)
    found = state(project)
    assert (found.state, found.files, found.blocks) == ("unknown", None, True)
    assert "rebuild it at a terminal: agent-hooks trust" in str(Trust().sources(project).problem)
    with pytest.raises(TrustError, match="cannot be used"):
        approve(project)
    assert stored.read_bytes() == text


JUDGED = """
import sys
from agent_hooks.trust.policy import Trust
for cwd in sys.argv[1:]:
    print([each.blocks for each in Trust().sources(cwd).projects])
"""


def judged_elsewhere(*directories: Path) -> list[str]:
    """Return whether the projects of each directory are denied, as a process finds that has not read the store before."""
    command = [sys.executable, "-c", JUDGED, *map(str, directories)]
    return subprocess.check_output(command, text=True, timeout=PATIENCE).splitlines()


def test_a_deleted_store_denies_each_project_that_has_a_set(stored: Path, project: Path, other: Path) -> None:
    """The kept bytes approve nothing. They say that there was an approval. The copy names a project without its files."""
    stored.unlink()
    found = state(project)
    assert (found.state, found.files, found.blocks) == ("unknown", None, True)
    (project.parent / "plain").mkdir()
    (project / ".agent").rename(project / "gone")
    assert judged_elsewhere(project, other, project.parent / "plain") == ["[True]", "[True]", "[]"]
    (stored.parent / "trust" / "copy.json").unlink()
    assert judged_elsewhere(project, other) == ["[]", "[True]"]


def test_a_process_that_has_read_a_store_denies_when_all_of_it_is_gone(stored: Path, project: Path) -> None:
    """A running session knows which projects have gates. Another process finds an agent home in which nobody approved."""
    assert state(project).state == "approved"
    stored.unlink()
    shutil.rmtree(stored.parent / "trust")
    assert judged_elsewhere(project) == ["[False]"]
    (project / ".agent").rename(project / "gone")
    assert state(project).blocks


@pytest.mark.parametrize("kind", ["missing", "cut", "directory"])
def test_a_store_is_rebuilt_from_its_copy(stored: Path, project: Path, kind: str) -> None:
    """The damaged one is renamed. A store without damage is not rebuilt."""
    with pytest.raises(TrustError, match="was rebuilt by another process"):
        Trust().store().rebuild({})
    whole = stored.read_bytes()
    stored.unlink()
    if kind == "cut":
        stored.write_bytes(whole[:-9])
    elif kind == "directory":
        stored.mkdir()
    store = Trust().store()
    store.rebuild(store.restorable())
    assert state(project).state == "approved"
    assert stored.read_bytes() == whole
    assert len(list(stored.parent.glob("trust.json.damaged-*"))) == (kind != "missing")


def test_a_store_of_a_newer_version_denies_the_projects_that_it_names(stored: Path, project: Path, other: Path) -> None:
    """Its approvals may mean something else; the text names the remedy."""
    stored.write_text(json.dumps({"version": 2, "projects": {str(project): ["another form"]}}))
    assert (state(project).state, state(project).blocks) == ("unknown", True)
    assert (state(other).state, state(other).blocks) == ("unknown", True)
    with pytest.raises(TrustError, match="newer agent-hooks"):
        Trust().store().rebuild({})
    assert "newer agent-hooks (version 2); update agent-hooks" in str(Trust().sources(project).problem)
    shown = json.loads(stored.read_text()) | {"projects": {}}
    stored.write_text(json.dumps(shown))
    assert "newer agent-hooks" in str(Trust().sources(project).problem)


@pytest.mark.parametrize("kind", ["directory", "FIFO", "device", "dangling link", "loop"])
def test_a_store_that_is_no_file_trusts_nothing(stored: Path, project: Path, kind: str) -> None:
    """It hangs nothing either."""
    stored.unlink()
    match kind:
        case "directory":
            stored.mkdir()
        case "FIFO":
            os.mkfifo(stored)
        case "device":
            stored.symlink_to("/dev/zero")
        case "dangling link":
            stored.symlink_to("nowhere")
        case _:
            stored.symlink_to(stored)
    assert (state(project).files, state(project).blocks) == (None, True)
    assert str(stored) in str(Trust().sources(project).problem)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_store_that_this_user_cannot_read_trusts_nothing(stored: Path, project: Path) -> None:
    """Neither the file itself, nor one below a directory without rights, counts as an empty store."""
    program = """
import os, sys
from agent_hooks.trust.store import TrustStore
os.setgid(54321); os.setuid(54321)
store = TrustStore(sys.argv[1])
print(bool(store.entries), store.problem)
"""
    for each in (project.parent, *project.parent.parents):
        if each != Path("/"):
            each.chmod(each.stat().st_mode | 0o055)
    stored.parent.parent.chmod(0o755)
    for mode in (0o755, 0o700):
        stored.parent.chmod(mode)
        line = subprocess.check_output([sys.executable, "-c", program, str(stored.parent)], text=True, timeout=PATIENCE)
        assert line.startswith("False ")
        assert str(stored) in line
        assert "Permission denied" in line


def test_a_deleted_project_of_a_damaged_store_is_still_denied(stored: Path, project: Path) -> None:
    """Its name is in the text of the store."""
    stored.write_bytes(stored.read_bytes()[:-3])
    (project / ".agent").rename(project / "gone")
    (project / "src").mkdir()
    assert state(project / "src").blocks


def test_two_processes_that_approve_at_once_lose_nothing(project: Path) -> None:
    """Each reads the store under its lock, and writes the whole of it."""
    projects = [project / f"p{number}" for number in range(24)]
    for each in projects:
        agent_file(each, text=f"# {each.name}\n")
    for process in [run(*projects[start::4]) for start in range(4)]:
        ended(process)
    assert [state(each).state for each in projects] == ["approved"] * 24
    assert {path.name for path in (Path(Trust().agent_home) / "trust" / "sets").iterdir()} == {
        str(state(each).digest) for each in projects
    }


def test_the_lock_of_a_dead_process_is_free(stored: Path, project: Path) -> None:
    """The system releases it, also after a kill; the file that stays is no lock."""
    line = "import fcntl, os, sys, time; f = os.open(sys.argv[1], os.O_RDWR); fcntl.flock(f, fcntl.LOCK_EX)"
    holder = subprocess.Popen(
        [sys.executable, "-c", f"{line}; print(flush=True); time.sleep(1000)", str(stored.parent / "trust" / "lock")],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.kill()
    holder.communicate(timeout=PATIENCE)
    agent_file(project, text="# another\n")
    approve(project)
    assert state(project).state == "approved"


def test_a_lock_that_is_held_is_named_after_a_while(
    stored: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person learns that another process changes the store."""
    monkeypatch.setattr("agent_hooks.trust.store.LOCK_TIMEOUT", 0.05)
    lock = os.open(stored.parent / "trust" / "lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TrustError, match=f"holds the lock of the trust store {stored}; try again"):
            approve(project)
    finally:
        os.close(lock)


def test_an_approval_that_is_killed_at_any_moment_trusts_nothing_halfway(stored: Path, project: Path) -> None:
    """Each step is a rename: the project is judged by the old set or by the new one, and its bytes are there."""
    old, copy = stored.read_bytes(), stored.parent / "trust" / "copy.json"
    [before] = [path.name for path in (stored.parent / "trust" / "sets").iterdir()]
    for number in range(9):
        agent_file(project, f"hooks/{number}.py", "x" * 10_000)
    for call in ("os.mkdir", "os.rename", "os.replace", "os.open", "shutil.rmtree"):
        for at in (1, 2, 12) if call in ("os.open", "os.replace") else (1,):
            killing = f"""
import os, shutil, signal
real, calls = {call}, [0]
def killed(*args, **options):
    calls[0] += 1
    if calls[0] == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **options)
{call} = killed
{APPROVE}"""
            subprocess.run([sys.executable, "-c", killing, str(project)], stderr=subprocess.DEVNULL, timeout=PATIENCE)
            found = state(project)
            assert (found.state, len(found.files or ())) in (("approved", 10), ("changed", 1)), (call, at)
            stored.write_bytes(old)
            copy.write_bytes(old)
            for path in (stored.parent / "trust" / "sets").iterdir():
                if path.name != before:
                    shutil.rmtree(path)
            Trust().store().remove("none")
    assert len(list((stored.parent / "trust" / "sets").iterdir())) == 1


def test_an_untrust_that_is_killed_at_any_moment_is_no_damage(stored: Path, project: Path, other: Path) -> None:
    """The project is approved or not.  The other one stays approved."""
    approve(other)
    for call, at in [("os.rename", 1), ("os.replace", 1), ("os.replace", 2), ("shutil.rmtree", 1), ("os.ftruncate", 9)]:
        approve(project)
        killing = f"""
import os, shutil, signal, sys
from agent_hooks.trust.policy import Trust
real, calls = {call}, [0]
def killed(*args, **options):
    calls[0] += 1
    if calls[0] == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **options)
{call} = killed
store = Trust().store()
store.remove(store.key(sys.argv[1]))"""
        subprocess.run([sys.executable, "-c", killing, str(project)], timeout=PATIENCE, check=False)
        assert Trust().store().problem is None, (call, at)
        assert state(other).state == "approved"
        assert state(project).state in ("approved", "new")


LOSSES = ["all entries", "one entry", "an older store", "the origin of an approval", "entries and the copy's too"]


@pytest.mark.parametrize("kind", LOSSES)
def test_a_store_that_lost_entries_denies_until_it_is_rebuilt(
    stored: Path, project: Path, other: Path, kind: str
) -> None:
    """It is read as well as any, by a process that runs and by a new one."""
    store, copy = Trust().store(), stored.parent / "trust" / "copy.json"
    earlier = stored.read_bytes()
    found = read_set(os.path.realpath(other))
    store.approve(store.key(found.project), found, origin=Origin(()))
    text = json.loads(stored.read_text())
    match kind:
        case "one entry":
            del text["projects"][str(project)]
        case "an older store":
            text = json.loads(earlier)
        case "the origin of an approval":
            del text["projects"][store.key(found.project)]["approved"][0]["origin"]
        case _:
            text["projects"] = {}
    stored.write_text(json.dumps(text))
    if kind == LOSSES[-1]:
        copy.write_text(json.dumps(text))
    assert state(project).blocks
    assert judged_elsewhere(project, other) == ["[True]", "[True]"]
    damaged = Trust().store()
    assert "lost entries" in str(damaged.problem)
    assert str(damaged.problem).endswith("rebuild it at a terminal: agent-hooks trust")
    with pytest.raises(TrustError, match="lost entries"):
        damaged.remove("x")
    damaged.rebuild(damaged.restorable())
    assert Trust().store().problem is None
    assert state(project).state == ("new" if kind == LOSSES[-1] else "approved")


def test_a_store_without_a_copy_is_whole(stored: Path, project: Path, other: Path) -> None:
    """An earlier version wrote none.  The next change does.  That version may approve more."""
    copy = stored.parent / "trust" / "copy.json"
    copy.unlink()
    assert state(project).state == "approved"
    approve(other)
    text = copy.read_bytes()
    assert text == stored.read_bytes()
    agent_file(project, text="# later")
    approve(project)
    copy.write_bytes(text)
    assert state(project).state == "approved"


def test_a_reader_sees_no_damage_while_another_process_changes_the_store(stored: Path, project: Path) -> None:
    """It may read the store before a change, and the copy or the kept bytes after it."""
    changing = """
import sys
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.policy import Trust
for number in range(15):
    store = Trust().store()
    store.approve(store.key(sys.argv[1]), read_set(sys.argv[1]))
    Trust().store().remove(store.key(sys.argv[1]))
"""
    project_of_it = project.parent / "changed"
    agent_file(project_of_it, text="# changed")
    process = subprocess.Popen([sys.executable, "-c", changing, str(project_of_it)], stderr=subprocess.PIPE)
    while process.poll() is None:
        assert Trust().store().problem is None
    ended(process)


def test_the_last_twenty_approvals_stay_and_the_bytes_of_others_are_removed(project: Path) -> None:
    """Changing the branch or the worktree asks nothing."""
    digests = []
    for number in range(MOST_APPROVALS + 3):
        agent_file(project, text=f"# {number}\n")
        digests.append(approve(project))
    store = Trust().store()
    [entry] = store.entries.values()
    assert [each.digest for each in entry.approved] == digests[3:]
    assert {path.name for path in (Path(store.home) / "trust" / "sets").iterdir()} == set(digests[3:])
    agent_file(project, text="# 2\n")
    assert state(project).state == "changed"
    agent_file(project, text="# 3\n")
    assert (state(project).state, state(project).newest) == ("approved", False)
    assert store.remove(store.key(str(project)))
    assert list((Path(store.home) / "trust" / "sets").iterdir()) == []
    assert state(project).state == "new"


def test_an_older_set_that_came_back_is_told_with_the_files_that_differ(project: Path) -> None:
    """Which are missing, which are others; of many the first three are named."""
    agent_file(project, "hooks/gate.py", "# one\n")
    agent_file(project, "hooks/old.py", "# one\n")
    approve(project)
    assert state(project).note is None
    (project / ".agent" / "hooks" / "old.py").unlink()
    names = [f"hooks/new_{number}.py" for number in range(5)]
    for name in ("hooks/gate.py", *names):
        agent_file(project, name, "# two\n")
    approve(project)
    for name in names:
        (project / ".agent" / name).unlink()
    agent_file(project, "hooks/gate.py", "# one\n")
    agent_file(project, "hooks/old.py", "# one\n")
    assert state(project).note == (
        f"{project}/.agent: an older set than the last approved one is in force, without .agent/hooks/new_0.py, "
        ".agent/hooks/new_1.py, .agent/hooks/new_2.py and 2 more and with another .agent/hooks/gate.py and with "
        ".agent/hooks/old.py; to keep or refuse it: agent-hooks trust"
    )
    assert Trust().sources(project).messages == [state(project).note]


def test_a_no_ends_the_approval_of_an_older_set_only(project: Path) -> None:
    """A no to the last approved set itself is remembered, and that set stays: another terminal may have said yes."""
    agent_file(project, text="# one\n")
    approve(project)
    agent_file(project, text="# two\n")
    approve(project)
    store = Trust().store()
    store.refuse(state(project).key, read_set(str(project)))
    assert state(project).state == "approved"
    agent_file(project, text="# one\n")
    store.refuse(state(project).key, read_set(str(project)))
    found = state(project)
    assert (found.state, found.note) == ("changed", None)
    assert [file.data for file in (found.files or {}).values()] == [b"# two\n"]


def test_a_followed_session_keeps_its_last_save_only(project: Path) -> None:
    """Twenty saves push no other approval out, and going back to an approved set does not end its approval."""
    agent_file(project, text="# first\n")
    first = approve(project)
    for number in range(MOST_APPROVALS + 5):
        agent_file(project, text=f"# {number}\n")
        last = approve(project, "follow")
    [entry] = Trust().store().entries.values()
    assert [each.digest for each in entry.approved] == [first, last]
    agent_file(project, text="# first\n")
    approve(project, "follow")
    agent_file(project, text="# last\n")
    last = approve(project, "follow")
    [entry] = Trust().store().entries.values()
    assert [each.digest for each in entry.approved][-2:] == [first, last]


def test_a_set_that_is_approved_once_more_gets_its_lost_bytes_back(stored: Path, project: Path) -> None:
    """A set whose bytes are whole is not written again."""
    kept = next((stored.parent / "trust" / "sets").glob("*/in/.agent/hooks/gate.py"))
    before = kept.stat().st_ino
    approve(project)
    assert kept.stat().st_ino == before
    kept.write_text("altered")
    approve(project)
    assert kept.read_text() == agent_file(project).read_text()


def test_a_no_is_remembered_until_the_content_changes(project: Path) -> None:
    """It denies nothing."""
    agent_file(project)
    store = Trust().store()
    found = read_set(str(project))
    store.refuse(store.key(str(project)), found)
    assert (state(project).state, state(project).files, state(project).blocks) == ("refused", None, False)
    agent_file(project, text="# another\n")
    assert state(project).state == "new"


def test_a_set_that_has_a_problem_cannot_be_approved(project: Path) -> None:
    """The error is the problem."""
    with agent_file(project).open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(TrustError, match="more than 32 MiB"):
        approve(project)


def test_a_store_that_cannot_be_written_is_a_clear_error(project: Path, home: Path) -> None:
    """The agent home is a file, for example."""
    agent_file(project)
    (home / ".agent").write_text("")
    with pytest.raises(TrustError, match=r"cannot change the trust store .*trust\.json"):
        approve(project)


def test_an_approval_counts_for_the_next_reader(project: Path) -> None:
    """A store that was read before has the old state; the next one the new."""
    agent_file(project)
    before = TrustStore(Trust().agent_home)
    approve(project)
    assert not before.entries
    assert judged_names(state(project)) == {".agent/hooks/gate.py"}
