"""Files that are made in one step, that have their rights from the first byte, and that outlive a power cut."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from agent_hooks.host.session import Session
from agent_hooks.storage.files import NO_LINKS, StorageError, create_atomically
from support import PATIENCE


def mode(path: Path) -> int:
    """Return the rights of a file."""
    return stat.S_IMODE(path.stat().st_mode)


# ---- in one step -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("links", [True, False])
def test_a_file_is_made_whole_and_never_replaced(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a file nor a link in its place; with hard links or without."""
    if not links:

        def refuse(*args: object, **options: object) -> None:
            raise OSError(NO_LINKS[0], "no hard links here")

        monkeypatch.setattr(os, "link", refuse)
    create_atomically(str(tmp_path / "file"), b"text", secret=True)
    assert ((tmp_path / "file").read_bytes(), mode(tmp_path / "file")) == (b"text", 0o600)
    (tmp_path / "link").symlink_to("elsewhere")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            create_atomically(str(tmp_path / name), b"other")
    with pytest.raises(StorageError, match=r"cannot write .*: No such file or directory"):
        create_atomically(str(tmp_path / "gone" / "file"), b"other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]
    assert (tmp_path / "file").read_bytes() == b"text"


@pytest.mark.parametrize("found", [None, b"", b"*", b"*\n", b"mine\n"])
def test_the_sessions_directory_keeps_itself_out_of_git(project: Path, found: bytes | None) -> None:
    """A file that an earlier version left empty or cut is mended; one with another text is the person's."""
    ignored = project / ".agent" / "sessions" / ".gitignore"
    if found is not None:
        ignored.parent.mkdir(parents=True)
        ignored.write_bytes(found)
    Session.create(str(project), home=str(project)).close()
    assert ignored.read_bytes() == (b"mine\n" if found == b"mine\n" else b"*\n")
    assert [path.name for path in ignored.parent.iterdir() if path.suffix != ".jsonl"] == [".gitignore"]


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_what_stands_in_the_place_of_that_file_stays(project: Path, kind: str) -> None:
    """A project from elsewhere may bring a link to a file of the person."""
    ignored = project / ".agent" / "sessions" / ".gitignore"
    ignored.parent.mkdir(parents=True)
    (project / "empty").touch()
    if kind == "link":
        ignored.symlink_to(project / "empty")
    else:
        {"fifo": os.mkfifo, "directory": os.mkdir}[kind](ignored)
    Session.create(str(project), home=str(project)).close()
    assert (project / "empty").read_bytes() == b""


def test_a_full_disk_leaves_no_empty_file_behind(project: Path) -> None:
    """A limit on the size of files stands for the full disk; the session is refused, and the next one works."""
    program = """
        import resource, sys
        from agent_hooks.errors import SessionError
        from agent_hooks.host.session import Session
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        try:
            Session.create(sys.argv[1], home=sys.argv[1])
        except SessionError as exc:
            print(exc)
    """
    line = [sys.executable, "-c", dedent(program), str(project)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    assert "the session cannot be saved" in done.stdout
    assert list((project / ".agent" / "sessions").iterdir()) == []
    Session.create(str(project), home=str(project)).close()
    assert (project / ".agent" / "sessions" / ".gitignore").read_bytes() == b"*\n"


# ---- with their rights from the first byte ---------------------------------------------------------------------------


WRITER = """
import os, stat, sys

late = []

def audit(event, args):
    # A change of rights after the content was written, for anybody to read until then.
    if event == "os.chmod":
        found = os.stat(args[0])
        if stat.S_ISREG(found.st_mode) and found.st_size and found.st_mode & 0o077:
            late.append((args[0], oct(found.st_mode)))

sys.addaudithook(audit)
os.umask(0)
import socket
from pathlib import Path

from agent_hooks.host.session import Session
from agent_hooks.records.keyed import load_key
from agent_hooks.records.lines import Prompt
from agent_hooks.records.writer import ChainWriter
from agent_hooks.server.files import ServerFiles
from agent_hooks.storage.files import write_atomically
from agent_hooks.trust.policy import Trust
from agent_hooks.trust.written import WrittenSessions

home, project = sys.argv[1:]
Trust().store().set_always("key", project, always=True)
records = Path(home, ".agent", "records")
writer = ChainWriter(str(records), "s")
writer.write(Prompt, {"id": writer.new_id(), "text": "a"}, b'"session":"s"')
writer.close()
load_key(str(records))
session = Session.create(project, home=home)
WrittenSessions(str(Path(home, ".agent"))).note(session.path, session.id)
settings = Path(project, "settings.json")
os.umask(0o077)
settings.write_text("{}")
os.umask(0)
write_atomically(str(settings) + ".backup", b"{}", like=str(settings))
files = ServerFiles(str(Path(home, "server")))
listener = files.listen()
files.publish()
print(late)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the rights of a socket's directory count")
def test_secret_files_have_their_rights_from_the_first_byte(home: Path, project: Path) -> None:
    """Without a umask too: records, trust, keys, sessions, copies of settings, sockets."""
    line = [sys.executable, "-c", WRITER, str(home), str(project)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "[]\n", done.stderr
    found = {path for path in [*home.rglob("*"), project / "settings.json.backup"] if not path.is_dir()}
    names = {path.name for path in found}
    assert {"trust.json", "key", "index.jsonl", "server.socket", "settings.json.backup"} <= names
    assert [path.name for path in found if mode(path) & 0o077] == [".gitignore"]


# ---- on the disk -----------------------------------------------------------------------------------------------------


FLUSHED = """
import os, sys
flushed = []
real = os.fsync

def fsync(file):
    flushed.append(os.path.realpath(f"/proc/self/fd/{file}"))
    return real(file)

os.fsync = fsync
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of descriptors in /proc")
@pytest.mark.parametrize("kind", ["trust", "approval", "index", "checkpoint"])
def test_what_is_said_to_be_saved_is_on_the_disk(home: Path, project: Path, kind: str) -> None:
    """The file and the directory that has its name, before the function returns."""
    program = {
        "trust": """
            from agent_hooks.trust.policy import Trust
            Trust().store().set_always("key", PROJECT, always=True)
            expected = [HOME + "/.agent/.agent-hooks-"]
        """,
        "approval": """
            from trust.approving import agent_file, approve
            from pathlib import Path
            agent_file(Path(PROJECT), text="def register(api): pass\\n")
            approve(Path(PROJECT))
            expected = [HOME + "/.agent", "/in/.agent/hooks", "/trust/sets"]
        """,
        "index": """
            from agent_hooks.records.lines import Prompt
            from agent_hooks.records.writer import ChainWriter
            writer = ChainWriter(HOME + "/.agent/records", "s")
            writer.write(Prompt, {"id": writer.new_id(), "text": "a"}, b'"session":"s"')
            assert not flushed
            writer.close()
            expected = ["/records/s.", "/records/index.jsonl"]
        """,
        "checkpoint": """
            import subprocess, anyio
            from agent_hooks import checkpoints
            subprocess.run(["git", "init", "-q"], cwd=PROJECT, check=True)
            anyio.run(checkpoints.create, PROJECT, "s", 1)
            expected = ["refs/agent-hooks/s/1", "refs/agent-hooks/s"]
        """,
    }[kind]
    text = f"{FLUSHED}\nHOME, PROJECT = sys.argv[1:]\n{dedent(program)}\n"
    text += "assert all(any(part in each for each in flushed) for part in expected), flushed\n"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    line = [sys.executable, "-c", text, str(home), str(project)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert done.returncode == 0, done.stderr
